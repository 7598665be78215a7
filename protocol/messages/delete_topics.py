"""DeleteTopics (API key 20), versions 0-6, flexible from 4.

Deletes topics.

v1   throttle_time_ms in the response
v2   the response goes out before the client is throttled (KIP-219)
v3   TOPIC_DELETION_DISABLED may be returned
v4   flexible
v5   error messages; THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599)
v6   topics by name or by id (KIP-516)
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import STRING, Request, Response, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: bytes = uuid("6+")


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(STRING, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+")
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, key=20, versions="0-6", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: Sequence[DeletableTopicResult] = array(DeletableTopicResult, "0+")
