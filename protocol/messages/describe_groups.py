"""DescribeGroups (API key 15), versions 0-5, flexible from 5.

Describes groups and their members.

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   authorized operations on request (KIP-430)
v4   group_instance_id of members (KIP-345)
v5   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import (
    STRING,
    Request,
    Response,
    Struct,
    array,
    boolean,
    byte_string,
    int16,
    int32,
    string,
)


class DescribeGroupsRequest(Request, key=15, versions="0-5", flexible="5+"):
    groups: list[str] = array(STRING, "0+")
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: bytes = byte_string("0+")
    member_assignment: bytes = byte_string("0+")


class DescribedGroup(Struct):
    error_code: int = int16("0+")
    group_id: str = string("0+")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array(DescribedGroupMember, "0+", kept=True, repeated=True)
    authorized_operations: int = int32("3+", default=-2147483648)


class DescribeGroupsResponse(Response, key=15, versions="0-5", flexible="5+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: Sequence[DescribedGroup] = array(DescribedGroup, "0+")
