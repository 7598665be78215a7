from __future__ import annotations

import pytest

from odradek.broker.tools.data.consumer.completed_fetch import CompletedFetch
from odradek.protocol.messages.fetch import AbortedTransaction
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from odradek.protocol.records.errors import CorruptRecordError, DecompressionError
from odradek.protocol.records.record import SimpleRecord

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def data(offset: int, *values: bytes, producer: int = -1, codec: int = 0) -> bytes:
    """A batch; of a transaction if a producer is named."""
    named = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    return bytes(
        build_batch(
            [SimpleRecord(1, None, value) for value in values],
            base_offset=offset,
            compression_type=codec,
            **(named if producer >= 0 else {}),  # type: ignore[arg-type]
        )
    )


def marker(offset: int, producer: int, kind: ControlRecordType) -> bytes:
    found = EndTransactionMarker(type=kind, coordinator_epoch=0)
    return bytes(
        build_end_transaction_batch(found, timestamp=1, producer_id=producer, producer_epoch=0, base_offset=offset)
    )


def read(
    batches: list[bytes], offset: int = 0, aborted: list[tuple[int, int]] | None = None
) -> tuple[list[bytes | None], int]:
    """The values, and the offset to fetch next. `aborted`: producer and first offset."""
    listed = None if aborted is None else [AbortedTransaction(producer_id=p, first_offset=o) for p, o in aborted]
    completed = CompletedFetch(memoryview(b"".join(batches)), offset, listed)
    return [record.value for record, _ in completed], completed.next_offset


def test_records_from_the_fetch_offset_on() -> None:
    assert read([data(0, b"a", b"b"), data(2, b"c")], 1) == ([b"b", b"c"], 3)


def test_a_torn_batch_at_the_end_is_left_for_the_next_fetch() -> None:
    assert read([data(0, b"a"), data(1, b"b")[:-1]]) == ([b"a"], 1)


def test_nothing() -> None:
    assert read([], 5) == ([], 5)


def test_markers_are_passed_over() -> None:
    assert read([data(0, b"a", producer=1), marker(1, 1, COMMIT)]) == ([b"a"], 2)


def test_uncommitted_reads_see_aborted_records() -> None:
    assert read([data(0, b"a", producer=1), marker(1, 1, ABORT)]) == ([b"a"], 2)


def test_aborted_records_are_left_out_up_to_their_marker() -> None:
    batches = [
        data(0, b"aborted", producer=1),
        data(1, b"other", producer=2),
        data(2, b"plain"),
        data(3, b"aborted", producer=1),
        marker(4, 1, ABORT),
        data(5, b"next transaction", producer=1),
        marker(6, 2, COMMIT),
        marker(7, 1, COMMIT),
    ]
    assert read(batches, aborted=[(1, 0)]) == ([b"other", b"plain", b"next transaction"], 8)


def test_two_aborted_transactions_of_a_producer() -> None:
    batches = [
        data(0, b"x", producer=1),
        marker(1, 1, ABORT),
        data(2, b"kept", producer=1),
        marker(3, 1, COMMIT),
        data(4, b"x", producer=1),
        marker(5, 1, ABORT),
    ]
    assert read(batches, aborted=[(1, 4), (1, 0)]) == ([b"kept"], 6)


def test_a_fetch_that_begins_inside_an_aborted_transaction() -> None:
    batches = [data(5, b"x", producer=1), marker(6, 1, ABORT), data(7, b"y")]
    assert read(batches, 5, aborted=[(1, 2)]) == ([b"y"], 8)


def test_a_damaged_batch() -> None:
    damaged = bytearray(data(0, b"a"))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="stored crc"):
        read([bytes(damaged)])
    assert [record.offset for record, _ in CompletedFetch(memoryview(bytes(data(0, b"a"))), 0, check_crcs=False)] == [0]


def test_what_decompresses_to_more_than_the_limit_is_refused() -> None:
    batch = data(0, bytes(100_000), codec=CompressionType.GZIP)
    allowed = CompletedFetch(memoryview(batch), 0, max_decompressed_bytes=100_100)
    assert [len(record.value or b"") for record, _ in allowed] == [100_000]
    with pytest.raises(DecompressionError, match="more than 50000 bytes"):
        list(CompletedFetch(memoryview(batch), 0, max_decompressed_bytes=50_000))
