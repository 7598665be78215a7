"""The part of a batch that stays, for each kind of batch."""

from __future__ import annotations

import pytest

from odradek.protocol.records.batch import RecordBatch, view_batch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.errors import CorruptRecordError, DecompressedSizeError
from odradek.protocol.records.layout import MAX_INT64
from odradek.protocol.records.legacy import LegacyBatch, build_message, build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.storage.cleaning.clean_job import CleanStats, LastRecord
from odradek.storage.cleaning.offset_map import OffsetMap
from odradek.storage.cleaning.record_filter import KeptBatch, RecordFilter, open_batch
from odradek.storage.cleaning.transaction_filter import TransactionFilter
from tests.support.disks.logs import NOW

RETENTION_MS = 1000


def filter_after(
    latest: dict[bytes, int],
    *,
    end: int = 1000,
    now_ms: int = NOW,
    retention_ms: int = RETENTION_MS,
    last_records: dict[int, LastRecord] | None = None,
    stats: CleanStats | None = None,
) -> RecordFilter:
    offset_map = OffsetMap(24 * 100, 0.9)
    for key, offset in latest.items():
        spans = open_batch(view_batch(memoryview(build_message(1, offset, 0, key, b""))), 100).spans
        offset_map.put_keys(spans, 0, 0)
    offset_map.latest_offset = end - 1
    return RecordFilter(
        offset_map,
        TransactionFilter(),
        last_records or {},
        stats or CleanStats(),
        now_ms=now_ms,
        delete_retention_ms=retention_ms,
        max_decompressed_bytes=10_000,
    )


def batch_of(*pairs: tuple[bytes | None, bytes | None], base_offset: int = 0, compression: int = 0) -> RecordBatch:
    records = [SimpleRecord(NOW, key, value) for key, value in pairs]
    return RecordBatch(memoryview(build_batch(records, base_offset=base_offset, compression_type=compression)))


def left(kept: KeptBatch | None) -> list[tuple[int, bytes | None, bytes | None]]:
    if kept is None:
        return []
    return [(r.offset, r.key, r.value) for r in view_batch(memoryview(kept.data)).records()]


def test_batch_of_latest_records_is_not_touched() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"))
    kept = filter_after({b"a": 0, b"b": 1}).filter(batch)
    assert kept is not None
    assert kept.data is batch.buffer
    assert kept.record_count == 2


def test_record_stays_without_an_entry_or_with_an_older_one() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"), base_offset=10)
    assert left(filter_after({b"a": 3}).filter(batch)) == [(10, b"a", b"1"), (11, b"b", b"2")]


def test_keyless_records_go_and_are_counted() -> None:
    stats = CleanStats()
    record_filter = filter_after({}, stats=stats, end=3)
    batch = batch_of((None, b"1"), (b"b", b"2"), (None, b"3"), (None, b"4"))
    assert left(record_filter.filter(batch)) == [(1, b"b", b"2"), (3, None, b"4")]
    assert (stats.invalid_messages_read, stats.messages_read) == (2, 4)


def test_tombstone_gets_its_horizon_once() -> None:
    kept = filter_after({}).filter(batch_of((b"a", None), (b"b", b"2")))
    assert kept is not None
    first = RecordBatch(memoryview(kept.data))
    assert first.delete_horizon_ms == NOW + RETENTION_MS
    assert [r.timestamp for r in first.records()] == [NOW, NOW]
    again = filter_after({}, now_ms=NOW + RETENTION_MS - 1).filter(first)
    assert again is not None
    assert again.data is first.buffer
    last = filter_after({}, now_ms=NOW + RETENTION_MS).filter(first)
    assert left(last) == [(1, b"b", b"2")]
    assert last is not None
    assert RecordBatch(memoryview(last.data)).delete_horizon_ms == NOW + RETENTION_MS


@pytest.mark.parametrize(("beyond_ms", "horizon_ms"), [(0, MAX_INT64), (1, None)])
def test_tombstone_whose_horizon_is_beyond_64_bits_has_none_and_stays(beyond_ms: int, horizon_ms: int | None) -> None:
    record_filter = filter_after({b"b": 5}, retention_ms=MAX_INT64 - NOW + beyond_ms)
    kept = record_filter.filter(batch_of((b"a", None), (b"b", b"2")))
    assert kept is not None
    first = RecordBatch(memoryview(kept.data))
    assert first.delete_horizon_ms == horizon_ms
    assert [(r.key, r.value, r.timestamp) for r in first.records()] == [(b"a", None, NOW)]
    assert left(record_filter.filter(first)) == [(0, b"a", None)]


def test_damaged_batch_is_not_given_a_new_checksum() -> None:
    batch = batch_of((b"a", b"1"), (b"b", b"2"))
    damaged = bytearray(batch.buffer)
    damaged[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="crc"):
        filter_after({b"a": 5}).filter(RecordBatch(memoryview(damaged)))


def test_batch_may_not_grow_without_limit() -> None:
    fits = batch_of((b"a", bytes(9_900)), compression=1)
    assert left(filter_after({}).filter(fits)) == [(0, b"a", bytes(9_900))]
    with pytest.raises(DecompressedSizeError):
        filter_after({}).filter(batch_of((b"a", bytes(10_000)), compression=1))


def test_last_batch_of_a_producer_stays_as_a_header() -> None:
    data = build_batch([SimpleRecord(NOW, b"a", b"1")], producer_id=5, producer_epoch=1, base_sequence=3)
    batch = RecordBatch(memoryview(data))
    assert filter_after({b"a": 9}).filter(batch) is None
    assert filter_after({b"a": 9}, last_records={5: LastRecord(1, 1)}).filter(batch) is None
    kept = filter_after({b"a": 9}, last_records={5: LastRecord(0, 1)}).filter(batch)
    assert kept is not None
    assert (len(kept.data), kept.record_count, kept.last_offset, kept.max_timestamp) == (61, 0, 0, NOW)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("timestamp_type", [0, 1])
def test_wrapper_of_old_format_is_rebuilt(magic: int, codec: int, timestamp_type: int) -> None:
    records = [Record(10 + n, NOW + n, key, b"v%d" % n) for n, key in enumerate([b"a", b"b", b"c"])]
    options = {"compression_type": codec, "timestamp_type": timestamp_type, "log_append_time": NOW + 9}
    data = build_messages(records, magic, base_offset=10, **options)
    wrapper = LegacyBatch(memoryview(data))
    whole = filter_after({b"a": 10}).filter(wrapper)
    assert whole is not None
    assert whole.data is wrapper.buffer
    kept = filter_after({b"b": 11, b"a": 20}).filter(wrapper)
    assert kept is not None
    assert bytes(kept.data) == build_messages(records[1:], magic, base_offset=11, **options)
    assert kept.last_offset == 12


def test_tombstone_of_old_format_is_removed_by_the_age_of_its_segment() -> None:
    message = LegacyBatch(memoryview(build_message(1, 5, NOW, b"a", None)))
    record_filter = filter_after({b"a": 5})
    assert left(record_filter.filter(message)) == [(5, b"a", None)]
    record_filter.retain_legacy_deletes = False
    assert record_filter.filter(message) is None


def test_wrapper_around_messages_of_another_magic_is_repaired() -> None:
    """LogCleanerTest.testCleanCorruptMessageSet and KAFKA-4298."""
    from odradek.protocol.records.compression import compress

    inner = b"".join(build_message(0, offset, -1, b"k%d" % offset, b"v") for offset in (3, 4))
    data = build_message(1, 4, NOW, None, compress(1, inner, None, 1), compression_type=1)
    kept = filter_after({}).filter(LegacyBatch(memoryview(data)))
    assert kept is not None
    repaired = LegacyBatch(memoryview(kept.data))
    assert {message.magic for message in repaired.inner_messages()} == {1}
    assert [(r.offset, r.key) for r in repaired.records()] == [(3, b"k3"), (4, b"k4")]
