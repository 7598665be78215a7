"""DeleteGroups (API key 42), versions 0-2, flexible from 2.

Deletes groups that have no members.

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import STRING, Request, Response, Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, key=42, versions="0-2", flexible="2+"):
    groups_names: list[str] = array(STRING, "0+")


class DeletableGroupResult(Struct):
    group_id: str = string("0+")
    error_code: int = int16("0+")


class DeleteGroupsResponse(Response, key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    results: Sequence[DeletableGroupResult] = array(DeletableGroupResult, "0+")
