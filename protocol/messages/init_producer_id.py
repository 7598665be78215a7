"""InitProducerId (API key 22), versions 0-5, flexible from 2.

Gives a producer its id and epoch, and fences earlier producers with the same transactional id.

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
v3   the producer presents its current id and epoch, so that it can recover after an abort (KIP-360)
v4   PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH
v5   TRANSACTION_ABORTABLE may be returned (KIP-890)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, int16, int32, int64, string


class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


class InitProducerIdResponse(Response, key=22, versions="0-5", flexible="2+"):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
