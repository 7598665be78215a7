"""ListTransactions (API key 66), versions 0-1, flexible.

Lists transactions, filtered by state and producer id (KIP-664).

v1   filter by duration (KIP-994)
"""

from __future__ import annotations

from odradek.protocol.codec.schema import INT64, STRING, Request, Response, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, key=66, versions="0-1", flexible="0+"):
    state_filters: list[str] = array(STRING, "0+")
    producer_id_filters: list[int] = array(INT64, "0+")
    duration_filter: int = int64("1+", default=-1)


class TransactionState(Struct):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    transaction_state: str = string("0+")


class ListTransactionsResponse(Response, key=66, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array(STRING, "0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
