"""FindCoordinator (API key 10), versions 0-6, flexible from 3.

Finds the broker that coordinates a group (key type 0), a transactional id (1) or, from v6 on, a share group (2).

v1   key_type; throttle_time_ms and an error message in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   flexible
v4   many keys in one request (KIP-699)
v5   TRANSACTION_ABORTABLE may be returned (KIP-890)
v6   share groups (KIP-932)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import STRING, Request, Response, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible="3+"):
    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(STRING, "4+")


class Coordinator(Struct):
    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Response, key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: Sequence[Coordinator] = array(Coordinator, "4+")
