"""JoinGroup (API key 11), versions 0-9, flexible from 6.

Joins a group; answered when the rebalance it is part of has gathered its members.

v1   rebalance_timeout_ms beside the session timeout (KIP-62)
v2   throttle_time_ms in the response
v3   the response goes out before the client is throttled (KIP-219)
v4   a new member is first given its id with MEMBER_ID_REQUIRED, and joins again with it (KIP-394)
v5   group_instance_id of static members (KIP-345)
v6   flexible
v7   protocol_type in the response; protocol_name may be null (KIP-559)
v8   reason of the (re)join, for the log (KIP-800)
v9   skip_assignment tells a static leader that it need not assign (KIP-814)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, boolean, byte_string, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    name: str = string("0+")
    metadata: bytes = byte_string("0+")


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = byte_string("0+")


class JoinGroupResponse(Response, key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = boolean("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, "0+")
