"""CreateAcls (API key 30), versions 0-3, flexible from 2.

Creates ACLs.

v1   pattern types: literal, prefixed (KIP-290); the response goes out before the client is throttled (KIP-219)
v2   flexible
v3   the resource type "user" (KIP-373)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, int8, int16, int32, string


class AclCreation(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class CreateAclsRequest(Request, key=30, versions="0-3", flexible="2+"):
    creations: list[AclCreation] = array(AclCreation, "0+")


class AclCreationResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class CreateAclsResponse(Response, key=30, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")
