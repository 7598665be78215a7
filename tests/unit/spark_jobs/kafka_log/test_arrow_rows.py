from __future__ import annotations

import pyarrow as pa
import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from spark_jobs.kafka_log.arrow_rows import ArrowRows, decode
from spark_jobs.kafka_log.columns import column_names
from spark_jobs.kafka_log.log_file import FoundBatch
from tests.support.disks.logs import NOW
from tests.support.kafka_log import checked


def found(*values: bytes, compression: int = 0) -> FoundBatch:
    content = bytes(build_batch([SimpleRecord(NOW, None, value) for value in values], compression_type=compression))
    return FoundBatch(RecordBatch(memoryview(content)), content, 0, len(content), 0)


def parts(*batches: FoundBatch, **options: object) -> list[pa.RecordBatch]:
    reading = checked("/data", **options)
    rows = ArrowRows("topic", 3, "/data", reading)
    complete = [
        part
        for each in batches
        for columns in decode(each, reading)
        for part in rows.add(each.batch, columns, "segment", is_aborted=False)
    ]
    return [*complete, *rows.rest()]


def test_arrow_batches_end_after_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [found(b"1", b"2"), found(b"3"), found(b"4", b"5"), found(b"6")]
    assert [part.num_rows for part in parts(*batches, maxRowsPerBatch=3)] == [3, 3]
    assert [part.num_rows for part in parts(*batches, maxRowsPerBatch=4)] == [4, 1, 1]
    assert [part.num_rows for part in parts(*batches)] == [6]


@pytest.mark.parametrize("compression", [0, 4])
def test_a_batch_of_very_many_records_is_taken_in_parts(compression: int) -> None:
    many = found(*[b""] * 25, compression=compression)
    taken = parts(many, maxRowsPerBatch=10)
    assert [part.num_rows for part in taken] == [10, 10, 5]
    assert [offset for part in taken for offset in part["offset"].to_pylist()] == list(range(25))


def test_arrow_batches_end_after_so_many_bytes() -> None:
    batches = [found(b"x" * 100), found(b"y" * 100), found(b"z" * 100)]
    assert [part.num_rows for part in parts(*batches, maxBytesPerBatch=150)] == [2, 1]


def test_columns_are_in_the_order_of_the_schema() -> None:
    for include_headers in (False, True):
        (part,) = parts(found(b"x"), includeHeaders=include_headers)
        assert part.schema.names == column_names(include_headers)


def test_a_key_of_a_header_that_is_no_text_has_replacements() -> None:
    content = bytes(build_batch([SimpleRecord(NOW, None, None, (("a\udcff", b"1"), ("b", None)))]))
    batch = FoundBatch(RecordBatch(memoryview(content)), content, 0, len(content), 0)
    (part,) = parts(batch, includeHeaders=True)
    assert part["headers"].to_pylist() == [[{"key": "a�", "value": b"1"}, {"key": "b", "value": None}]]
