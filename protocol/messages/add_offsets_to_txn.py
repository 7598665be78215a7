"""AddOffsetsToTxn (API key 25), versions 0-4, flexible from 3.

Adds the offsets of a group to a transaction.

v1   the response goes out before the client is throttled (KIP-219)
v2   PRODUCER_FENCED may be returned
v3   flexible
v4   TRANSACTION_ABORTABLE may be returned (KIP-890)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, key=25, versions="0-4", flexible="3+"):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


class AddOffsetsToTxnResponse(Response, key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
