from __future__ import annotations

from hypothesis import given

from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.wire.record_bytes import ONE, ONE_BYTES, encoded, read
from tests.support.wire.record_strategies import T, spaced_records


def test_bytes_of_one_record() -> None:
    assert encoded(ONE) == ONE_BYTES
    assert read(ONE_BYTES, 1) == [ONE]


def test_size_in_bytes_counts_key_and_value() -> None:
    assert Record(0, T, b"key", None).size_in_bytes == 3


@given(spaced_records())
def test_round_trip(sample: tuple[int, list[Record]]) -> None:
    base_offset, records = sample
    base_timestamp = records[0].timestamp
    data = encoded(*records, base_offset=base_offset, base_timestamp=base_timestamp)
    assert read(data, len(records), base_offset=base_offset, base_timestamp=base_timestamp) == records


def test_empty_is_not_null() -> None:
    record = Record(0, T, b"", b"", (("", b""), ("n", None)))
    assert read(encoded(record), 1) == [record]


def test_simple_record_has_no_headers_by_default() -> None:
    assert SimpleRecord(T, None, None).headers == ()
