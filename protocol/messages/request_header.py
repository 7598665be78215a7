"""Headers of requests and responses, as Kafka defines them.

These schemas are for reference and tests: `odradek.protocol.headers` reads and writes the same bytes by hand, because
every request passes through it.

Request header: v1 client_id, which keeps its classic int16 length in v2; v2 flexible. Response header: v1 flexible.
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Message, int16, int32, string


class RequestHeader(Message, versions="0-2", flexible="2+"):
    request_api_key: int = int16("0+")
    request_api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", ignorable=True, flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: int = int32("0+")
