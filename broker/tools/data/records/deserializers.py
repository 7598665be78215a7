"""Apache's deserializers, by class name: bytes of a key or value to the text that is printed.

Kafka: the classes of org.apache.kafka.common.serialization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isinf, isnan
from struct import Struct
from typing import Final


class SerializationError(ValueError):
    """The bytes have another size than the type."""


def _number(
    layout: Struct, name: str, form: Callable[[float, Struct], str] = lambda number, _: str(number)
) -> Callable[[bytes], bytes]:
    def text(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise SerializationError(f"Size of data received by {name}Deserializer is not {layout.size}")
        return form(layout.unpack(data)[0], layout).encode()

    return text


def java_float(number: float, layout: Struct) -> str:
    """The fewest digits, at least two, that give the same number in this layout, written as Java does.

    Kafka: the toString of java.lang.Float and java.lang.Double (JDK 19 and later).
    """
    if isnan(number):
        return "NaN"
    if isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return str(number)
    packed = layout.pack(number)
    text = next(text for text in (f"{number:.{n}e}" for n in range(1, 17)) if _packs_to(text, layout, packed))
    mantissa, _, power = text.partition("e")
    exponent = int(power)
    if -3 <= exponent < 7:
        digits = len(mantissa.lstrip("-").replace(".", "").rstrip("0"))
        return f"{float(text):.{max(1, digits - 1 - exponent)}f}"
    return f"{mantissa}E{exponent}"


def _packs_to(text: str, layout: Struct, packed: bytes) -> bool:
    try:
        return layout.pack(float(text)) == packed
    except OverflowError:  # rounded up beyond the largest float
        return False


def _uuid(data: bytes) -> bytes:
    from uuid import UUID

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
    "FloatDeserializer": _number(Struct(">f"), "Float", java_float),
    "DoubleDeserializer": _number(Struct(">d"), "Double", java_float),
    "UUIDDeserializer": _uuid,
}


def deserializer(name: str) -> Callable[[bytes], bytes]:
    """The function for a class name, with or without its package. Raises: ValueError for an unknown class."""
    found = _DESERIALIZERS.get(name.rpartition(".")[2])
    if found is None:
        raise ValueError(f"{name} is no deserializer that is known here; known are {', '.join(sorted(_DESERIALIZERS))}")
    return found
