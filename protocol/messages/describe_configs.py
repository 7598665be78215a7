"""DescribeConfigs (API key 32), versions 0-4, flexible from 4.

Describes the configuration of topics (resource type 2), brokers (4) and loggers (8).

v1   the source of each value, and its synonyms on request (KIP-226); v0 has is_default
v2   the response goes out before the client is throttled (KIP-219)
v3   types and, on request, documentation (KIP-569)
v4   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import STRING, Request, Response, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configuration_keys: list[str] | None = array(STRING, "0+", nullable="0+")


class DescribeConfigsRequest(Request, key=32, versions="0-4", flexible="4+"):
    resources: Sequence[DescribeConfigsResource] = array(DescribeConfigsResource, "0+", packed=True)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


class DescribeConfigsSynonym(Struct):
    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


class DescribeConfigsResourceResult(Struct):
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")
    read_only: bool = boolean("0+")
    is_default: bool = boolean("0")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("0+")
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult, "0+", kept=True, repeated=True)


class DescribeConfigsResponse(Response, key=32, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("0+")
    results: Sequence[DescribeConfigsResult] = array(DescribeConfigsResult, "0+")
