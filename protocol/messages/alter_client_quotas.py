"""AlterClientQuotas (API key 49), versions 0-1, flexible from 1.

Changes quotas of users, client ids and addresses (KIP-546).

v1   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import Request, Response, Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


class RequestEntryData(Struct):
    entity: Sequence[EntityData] = array(EntityData, "0+", packed=True)
    ops: Sequence[OpData] = array(OpData, "0+", packed=True)


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    entries: Sequence[RequestEntryData] = array(RequestEntryData, "0+", packed=True)
    validate_only: bool = boolean("0+")


class ResponseEntryData(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: Sequence[EntityData] = array(EntityData, "0+")


class AlterClientQuotasResponse(Response, key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32("0+")
    entries: list[ResponseEntryData] = array(ResponseEntryData, "0+")
