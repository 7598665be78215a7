"""Every message of the protocol package, seeded random values for it, and its form in Kafka's message JSON."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TypeVar

from odradek.protocol.api import API
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Field, Kind, Message, Primitive, Struct
from odradek.protocol.codec.source_writer import fields_at
from odradek.protocol.messages import (
    consumer_group_records,
    consumer_protocol,
    control_records,
    coordinator_records,
    default_principal,
    request_header,
)

S = TypeVar("S", bound=Struct)
INTEGERS = {Kind.INT8: (7, True), Kind.INT16: (15, True), Kind.UINT16: (16, False), Kind.INT32: (31, True)}
INTEGERS |= {Kind.UINT32: (32, False), Kind.INT64: (63, True)}
TEXTS = ("", "a", "topic-1", "grüße", "日本語", "\U0001f9f5", "x" * 126, "y" * 127, "é" * 64, "z" * 300)


def api_messages() -> Iterator[type[Message]]:
    """Requests and responses of the API table."""
    for spec in API.values():
        yield spec.request_type()
        yield spec.response_type()


def data_messages() -> Iterator[type[Message]]:
    """Messages without an API key: headers, principals, values inside records."""
    for module in (
        consumer_group_records,
        consumer_protocol,
        control_records,
        coordinator_records,
        default_principal,
        request_header,
    ):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__:
                yield value


def every_message() -> list[type[Message]]:
    return [*api_messages(), *data_messages()]


def every_version() -> Iterator[tuple[type[Message], int]]:
    for message in every_message():
        for version in range(message.VERSIONS.first, message.VERSIONS.last + 1):
            yield message, version


def random_struct(struct: type[S], version: int, rng: random.Random) -> S:
    """A value that the version can express in full: what is absent from the version keeps its default."""
    in_place, tagged, _ = fields_at(struct, version)
    result = struct()
    for field in in_place:
        setattr(result, field.name, random_field(field, version, rng))
    for field in tagged:
        if rng.random() < 0.6:
            setattr(result, field.name, random_field(field, version, rng))
    return result


def random_field(field: Field, version: int, rng: random.Random) -> object:
    if field.nullable.covers(version) and rng.random() < 0.25:
        return None
    if field.kind is Kind.ARRAY:
        return [random_element(field.element, version, rng) for _ in range(random_length(field.element, rng))]
    if field.kind is Kind.STRUCT:
        assert isinstance(field.element, type)
        return random_struct(field.element, version, rng)
    return random_primitive(field.kind, rng)


def random_length(element: object, rng: random.Random) -> int:
    """Mostly short; numbers sometimes need a count of two bytes or an array longer than what is prepared for."""
    if rng.random() < 0.03:
        return rng.choice((16, 17, 126, 127, 128)) if isinstance(element, Primitive) else 17
    return rng.choice((0, 1, 1, 2, 3))


def random_element(element: Primitive[object] | type[Struct] | None, version: int, rng: random.Random) -> object:
    if isinstance(element, Primitive):
        return random_primitive(element.kind, rng)
    assert element is not None
    return random_struct(element, version, rng)


def random_primitive(kind: Kind, rng: random.Random) -> object:
    if kind in INTEGERS:
        bits, signed = INTEGERS[kind]
        lowest, highest = (-(1 << bits), (1 << bits) - 1) if signed else (0, (1 << bits) - 1)
        return rng.choice((0, 1, lowest, highest, rng.randint(lowest, highest), rng.randint(0, 100)))
    match kind:
        case Kind.BOOL:
            return rng.random() < 0.5
        case Kind.FLOAT64:
            return rng.choice((0.0, -1.5, 2.0**60, 0.1))
        case Kind.UUID:
            return rng.choice((ZERO_UUID, rng.randbytes(16)))
        case Kind.STRING:
            return rng.choice(TEXTS)
        case _:
            return rng.randbytes(rng.choice((0, 1, 5, 126, 127, 200)))
