from __future__ import annotations

import pytest

from odradek.broker.tools.data.records.record_format import (
    ConsumedRecord,
    PrintedFields,
    format_string,
    nothing,
    values_only,
)
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from odradek.protocol.records.record import Record

HEADERS = (("h", b"1"), ("n", None))


def record(key: bytes | None = b"k", value: bytes | None = b"v", headers: object = HEADERS) -> ConsumedRecord:
    return ConsumedRecord("topic", 2, Record(7, 1234, key, value, headers), CREATE_TIME)  # type: ignore[arg-type]


def test_tokens() -> None:
    form = format_string(r"%t[%p]@%o %T %K:%k %S:%s %h%%\n\x41")
    assert form(record()) == b"topic[2]@7 1234 1:k 1:v h=1,n=NULL%\nA"
    assert form(record(None, None, ())) == b"topic[2]@7 1234 -1: -1: %\nA"
    assert format_string("%k %s", b"NULL")(record(None, None)) == b"NULL NULL"


def test_a_length_in_four_bytes() -> None:
    assert format_string("%R%s")(record(value=b"abc")) == b"\0\0\0\x03abc"
    assert format_string("%R")(record(value=None)) == b"\xff\xff\xff\xff"


def test_bytes_stay_as_they_are() -> None:
    assert format_string("%s")(record(value=bytes(range(256)))) == bytes(range(256))


def test_an_unknown_token_is_refused() -> None:
    with pytest.raises(ValueError, match="%y is not a token"):
        format_string("%y")


def test_apaches_fields() -> None:
    everything = PrintedFields(
        print_timestamp=True, print_partition=True, print_offset=True, print_headers=True, print_key=True
    )
    assert everything.line(record()) == b"CreateTime:1234\tPartition:2\tOffset:7\th:1,n:null\tk\tv\n"
    appended = record(None, None, ())._replace(timestamp_type=LOG_APPEND_TIME)
    assert everything.line(appended) == b"LogAppendTime:1234\tPartition:2\tOffset:7\tNO_HEADERS\tnull\tnull\n"
    untimed = record()._replace(timestamp_type=NO_TIMESTAMP_TYPE)
    assert PrintedFields(print_timestamp=True).line(untimed) == b"NO_TIMESTAMP\tv\n"
    assert PrintedFields(print_key=True, print_value=False, line_separator=b"|").line(record()) == b"k|"
    assert PrintedFields(print_value=False).line(record()) == b""


def test_values_and_keys() -> None:
    assert values_only()(record()) == b"v\n"
    assert values_only(b"|", b"NULL", b":")(record(None, None)) == b"NULL:NULL|"
    assert nothing(record()) == b""
