from __future__ import annotations

import pytest

from odradek.broker.tools.data.deserializers import SerializationError, deserializer


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


def test_bytes_of_another_size() -> None:
    with pytest.raises(SerializationError, match="Size of data received by LongDeserializer is not 8"):
        deserializer("LongDeserializer")(b"null")
    with pytest.raises(SerializationError, match="UUID"):
        deserializer("UUIDDeserializer")(b"x")


def test_an_unknown_class() -> None:
    with pytest.raises(ValueError, match=r"com.example.Mine is no deserializer"):
        deserializer("com.example.Mine")
