"""SyncGroup (API key 14), versions 0-5, flexible from 4.

The leader of a group hands in the assignments, and every member gets its own.

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   group_instance_id of static members (KIP-345)
v4   flexible
v5   protocol type and name, both ways; a mismatch is refused (KIP-559)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, byte_string, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    member_id: str = string("0+")
    assignment: bytes = byte_string("0+")


class SyncGroupRequest(Request, key=14, versions="0-5", flexible="4+"):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+")


class SyncGroupResponse(Response, key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = byte_string("0+")
