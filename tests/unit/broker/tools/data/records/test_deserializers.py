from __future__ import annotations

from struct import Struct

import pytest

from odradek.broker.tools.data.records.deserializers import SerializationError, deserializer, java_float


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", b"\xff" * 8, b"-1"),
        ("IntegerDeserializer", b"\0\0\1\0", b"256"),
        ("ShortDeserializer", b"\0\1", b"1"),
        ("DoubleDeserializer", b"\x3f\xf8\0\0\0\0\0\0", b"1.5"),
        ("StringDeserializer", b"\xff", b"\xff"),
        ("UUIDDeserializer", b"00000000-0000-0000-0000-000000000001", b"00000000-0000-0000-0000-000000000001"),
    ],
)
def test_bytes_to_text(name: str, data: bytes, text: bytes) -> None:
    assert deserializer(name)(data) == text


@pytest.mark.parametrize(
    ("layout", "number", "text"),
    [
        (">f", 0.1, "0.1"),
        (">f", 16777216.0, "1.6777216E7"),
        (">f", 3.4028234663852886e38, "3.4028235E38"),
        (">d", 0.1, "0.1"),
        (">d", 10.0, "10.0"),
        (">d", -0.001, "-0.001"),
        (">d", 0.00099, "9.9E-4"),
        (">d", 9999999.5, "9999999.5"),
        (">d", 1e7, "1.0E7"),
        (">d", 4.9e-324, "4.9E-324"),
        (">d", 0.1 + 0.2, "0.30000000000000004"),
        (">d", -0.0, "-0.0"),
        (">d", float("nan"), "NaN"),
        (">d", float("-inf"), "-Infinity"),
    ],
)
def test_floats_are_written_as_java_does(layout: str, number: float, text: str) -> None:
    kind = Struct(layout)
    assert java_float(*kind.unpack(kind.pack(number)), kind) == text


def test_bytes_of_another_size() -> None:
    with pytest.raises(SerializationError, match="Size of data received by LongDeserializer is not 8"):
        deserializer("LongDeserializer")(b"null")
    with pytest.raises(SerializationError, match="UUID"):
        deserializer("UUIDDeserializer")(b"x")


def test_an_unknown_class() -> None:
    with pytest.raises(ValueError, match=r"com.example.Mine is no deserializer"):
        deserializer("com.example.Mine")
