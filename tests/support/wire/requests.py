"""A short notation of requests: dicts in place of nested structs, turned into the message classes of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from odradek.protocol.api import API
from odradek.protocol.codec.schema import Primitive, Request, Struct
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import SimpleRecord

OLD = 1_600_000_000_000  # a fixed time for records, so that batches are the same bytes in every run

S = TypeVar("S", bound=Struct)


def build(api_key: int, **fields: object) -> Request:
    """The request of that API, with dicts for the structs in its fields."""
    return _struct(API[api_key].request_type(), fields)


def _struct(struct_type: type[S], values: Mapping[str, object]) -> S:
    elements = {field.name: field.element for field in struct_type.FIELDS}
    return struct_type(**{name: _value(elements[name], value) for name, value in values.items()})


def _value(element: Primitive[object] | type[Struct] | None, value: object) -> object:
    if element is None or isinstance(element, Primitive) or value is None:
        return value
    if isinstance(value, list):
        return [_struct(element, item) for item in value]
    assert isinstance(value, Mapping)
    return _struct(element, value)


def simple_records(*values: bytes | None, key: bytes | None = None) -> list[SimpleRecord]:
    return [SimpleRecord(timestamp=OLD + i, key=key, value=value) for i, value in enumerate(values)]


def batch(*values: bytes | None, key: bytes | None = None, **options: int) -> bytes:
    """A batch of magic 2 with these values, at fixed times."""
    return bytes(build_batch(simple_records(*values, key=key), **options))


def message_set(magic: int, *values: bytes | None, key: bytes | None = None, compression_type: int = 0) -> bytes:
    """The same values as a message set of magic 0 or 1."""
    return build_messages(simple_records(*values, key=key), magic, compression_type=compression_type)
