"""Heartbeat (API key 12), versions 0-4, flexible from 4.

Keeps a member of a group alive, and tells it of rebalances.

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   group_instance_id of static members (KIP-345)
v4   flexible
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, int16, int32, string


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
