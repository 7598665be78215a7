"""Requests and answers as plain values: dicts with the field names of Kafka's definitions.

Names are those of `protocol.message_json`, values those of Python: bytes stay bytes, a UUID is its text. Records are
kept as bytes; of records that the recorder does not have, there is the size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from odradek.protocol.codec.field import Kind, Primitive
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_to_text
from odradek.protocol.codec.schema import Struct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_json import camel_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Plain: TypeAlias = bool | int | float | str | bytes | list["Plain"] | dict[str, "Plain"] | None

_TOPIC_KEYS = frozenset({"topic", "topicName"})
_NAMED_BY_TOPIC = frozenset({"topics", "topicData", "responses", "topicStates"})


def plain(message: Struct, version: int, *, has_records: bool = True) -> dict[str, Plain]:
    """The fields of the message that its version has. Without `has_records`, records are {"sizeInBytes": size}."""
    values: dict[str, Plain] = {}
    for field in message.FIELDS:
        if not field.versions.covers(version):
            continue
        element = field.element
        inner = element.kind if isinstance(element, Primitive) else Kind.STRUCT
        held: object = getattr(message, field.name)
        values[camel_case(field.name)] = _plain(field.kind, inner, held, version, has_records)
    return values


def _plain(kind: Kind, inner: Kind, value: object, version: int, has_records: bool) -> Plain:
    if isinstance(value, Struct):
        return plain(value, version, has_records=has_records)
    if isinstance(value, list):
        return [_plain(inner, Kind.STRUCT, item, version, has_records) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        if kind is Kind.RECORDS and not has_records:
            return {"sizeInBytes": len(value)}
        return uuid_to_text(bytes(value)) if kind is Kind.UUID else bytes(value)
    assert value is None or isinstance(value, bool | int | float | str)
    return value


def topics_in(value: Plain, names: Mapping[str, str]) -> Iterator[str]:
    """The topics that a plain message names, with repetitions. `names`: the names of topic ids."""
    if isinstance(value, list):
        for item in value:
            yield from topics_in(item, names)
    elif isinstance(value, dict):
        for key, held in value.items():
            if key in _TOPIC_KEYS and isinstance(held, str):
                yield held
            elif key == "topicId" and isinstance(held, str) and held != uuid_to_text(ZERO_UUID):
                yield names.get(held, held)
            elif key in _NAMED_BY_TOPIC and isinstance(held, list):
                for item in held:
                    if isinstance(item, str):
                        yield item
                    elif isinstance(item, dict) and isinstance(name := item.get("name"), str):
                        yield name
            yield from topics_in(held, names)


def errors_in(value: Plain) -> Iterator[str]:
    """Kafka's names of the error codes in a plain answer, in their order, without NONE."""
    if isinstance(value, list):
        for item in value:
            yield from errors_in(item)
    elif isinstance(value, dict):
        for key, held in value.items():
            if key == "errorCode" and isinstance(held, int):
                if held:
                    yield error_name(held)
            else:
                yield from errors_in(held)


def error_name(code: int) -> str:
    """Kafka's name; the number of an unknown code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
