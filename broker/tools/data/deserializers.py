"""Apache's deserializers, by class name: bytes of a key or value to the text that is printed.

Kafka: the classes of org.apache.kafka.common.serialization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final
from uuid import UUID


class SerializationError(ValueError):
    """The bytes have another size than the type."""


def _number(layout: Struct, name: str) -> Callable[[bytes], bytes]:
    def text(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise SerializationError(f"Size of data received by {name}Deserializer is not {layout.size}")
        return str(layout.unpack(data)[0]).encode()

    return text


def _uuid(data: bytes) -> bytes:
    try:
        return str(UUID(data.decode())).encode()
    except ValueError as error:
        raise SerializationError(f"Error parsing data into UUID: {error}") from None


_DESERIALIZERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "StringDeserializer": bytes,
    "ByteArrayDeserializer": bytes,
    "BytesDeserializer": bytes,
    "ShortDeserializer": _number(Struct(">h"), "Short"),
    "IntegerDeserializer": _number(Struct(">i"), "Integer"),
    "LongDeserializer": _number(Struct(">q"), "Long"),
    "FloatDeserializer": _number(Struct(">f"), "Float"),
    "DoubleDeserializer": _number(Struct(">d"), "Double"),
    "UUIDDeserializer": _uuid,
}


def deserializer(name: str) -> Callable[[bytes], bytes]:
    """The function for a class name, with or without its package. Raises: ValueError for an unknown class."""
    found = _DESERIALIZERS.get(name.rpartition(".")[2])
    if found is None:
        raise ValueError(f"{name} is no deserializer that is known here; known are {', '.join(sorted(_DESERIALIZERS))}")
    return found
