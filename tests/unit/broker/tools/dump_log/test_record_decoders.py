from __future__ import annotations

import pytest

from odradek.broker.tools.dump_log.record_decoders import (
    BYTES_DECODERS,
    DEPRECATED_DECODERS,
    STRING_DECODER,
    RecordDecodingError,
    plain_decoder,
)
from odradek.protocol.records.record import Record

LONG = BYTES_DECODERS["org.apache.kafka.tools.api.LongDecoder"]
INTEGER = BYTES_DECODERS["org.apache.kafka.tools.api.IntegerDecoder"]
STRING = BYTES_DECODERS[STRING_DECODER]


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(7, 0, key, value)


def test_plain_parts_are_decoded_each_by_itself() -> None:
    decode = plain_decoder(INTEGER, LONG)
    assert decode(record(b"\xff\xff\xff\xfe", bytes(7) + b"\x05more")) == ("-2", "5")
    assert decode(record(None, None)) == (None, None)


def test_a_number_that_is_too_short_ends_the_dump() -> None:
    with pytest.raises(RecordDecodingError, match="offset 7"):
        plain_decoder(STRING, LONG)(record(b"k", b"v"))


def test_bytes_are_printed_by_their_identity() -> None:
    assert BYTES_DECODERS["org.apache.kafka.tools.api.DefaultDecoder"](b"x").startswith("[B@")


def test_deprecated_names_lead_to_the_new_ones() -> None:
    assert DEPRECATED_DECODERS["kafka.serializer.StringDecoder"] == STRING_DECODER
    assert set(DEPRECATED_DECODERS.values()) == set(BYTES_DECODERS)
