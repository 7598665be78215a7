"""LeaveGroup (API key 13), versions 0-5, flexible from 4.

Takes members out of a group.

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   many members in one request, by member id or group_instance_id (KIP-345)
v4   flexible
v5   reason, for the log (KIP-800)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array(MemberResponse, "3+")
