"""AlterConfigs (API key 33), versions 0-2, flexible from 2.

Replaces the whole configuration of resources; what is not named is lost. IncrementalAlterConfigs is the better one.

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: Sequence[AlterableConfig] = array(AlterableConfig, "0+", packed=True)


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible="2+"):
    resources: Sequence[AlterConfigsResource] = array(AlterConfigsResource, "0+", packed=True)
    validate_only: bool = boolean("0+")


class AlterConfigsResourceResponse(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


class AlterConfigsResponse(Response, key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    responses: Sequence[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+")
