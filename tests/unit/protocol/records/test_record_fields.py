from __future__ import annotations

import pytest

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.records.errors import InvalidRecordError
from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.record import Record
from odradek.protocol.records.record_fields import MAX_HEADERS
from odradek.protocol.records.record_walks import read_keys, summarize
from tests.support.wire.record_bytes import encoded, raw_record, read
from tests.support.wire.record_strategies import T


def test_any_negative_length_is_null() -> None:
    data = raw_record(b"\x00\x00\x00" + write_varint(-2) + write_varint(-70000) + b"\x00")
    assert read(data, 1) == [Record(0, T, None, None)]


def test_bits_beyond_the_32nd_are_dropped_as_in_kafka() -> None:
    data = raw_record(b"\x00\x00" + b"\xfe\xff\xff\xff\x7f" + b"\x01\x01\x00")
    assert [record.offset for record in read(data, 1)] == [2**31 - 1]
    assert [span[0] for span in read_keys(data, 1)] == [2**31 - 1]
    assert summarize(data, 1, T).offset_delta_of_max_timestamp == 2**31 - 1


def test_bits_beyond_the_64th_of_a_timestamp_are_dropped_as_in_kafka() -> None:
    data = raw_record(b"\x00" + b"\x86" + b"\x80" * 8 + b"\x7e" + b"\x00\x01\x01\x00")
    assert [record.timestamp for record in read(data, 1)] == [T + 3]
    assert summarize(data, 1, T).max_timestamp == T + 3


def test_headers_are_limited() -> None:
    at_limit = ((("", None),) * MAX_HEADERS, (("", None),) * (MAX_HEADERS + 1))
    good, bad = (encoded(Record(0, T, None, None, headers)) for headers in at_limit)
    assert len(read(good, 1)[0].headers) == MAX_HEADERS
    assert summarize(good, 1, T).record_count == 1
    for walk in (lambda: read(bad, 1), lambda: summarize(bad, 1, T)):
        with pytest.raises(InvalidRecordError, match="number of record headers"):
            walk()


def test_header_keys_that_are_not_utf8_survive() -> None:
    data = raw_record(b"\x00\x00\x00\x01\x01" + b"\x02" + b"\x04\xff\xfe" + b"\x01")
    (record,) = read(data, 1)
    assert encoded(record) == data


@pytest.mark.parametrize(("base_timestamp", "delta"), [(MAX_INT64, 1), (2**61, 2**63 - 1), (-MAX_INT64, -5)])
def test_timestamps_outside_64_bits_are_refused(base_timestamp: int, delta: int) -> None:
    data = raw_record(b"\x00" + write_varint(delta) + b"\x00\x01\x01\x00")
    with pytest.raises(InvalidRecordError, match="64 bits"):
        read(data, 1, base_timestamp=base_timestamp)
    with pytest.raises(InvalidRecordError, match="64 bits"):
        summarize(data, 1, base_timestamp)
