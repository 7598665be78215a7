"""IncrementalAlterConfigs (API key 44), versions 0-1, flexible from 1.

Changes single configurations: operations 0 set, 1 delete, 2 append, 3 subtract (KIP-339).

v1   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    name: str = string("0+")
    config_operation: int = int8("0+")
    value: str | None = string("0+", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: Sequence[AlterableConfig] = array(AlterableConfig, "0+", packed=True)


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible="1+"):
    resources: Sequence[AlterConfigsResource] = array(AlterConfigsResource, "0+", packed=True)
    validate_only: bool = boolean("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


class IncrementalAlterConfigsResponse(Response, key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32("0+")
    responses: Sequence[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+")
