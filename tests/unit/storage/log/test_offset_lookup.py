"""Looking up offsets by time, against a scan of all records."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import assemble_batch
from odradek.protocol.records.compression import compress
from odradek.protocol.records.legacy import LegacyBatch, build_message
from odradek.protocol.records.retained import empty_batch
from odradek.storage.disk.ports import WorkerError
from odradek.storage.log import offset_lookup
from odradek.storage.log.offset_lookup import (
    FIRST_STEP,
    WORKERS,
    LongLookupError,
    LongLookups,
    OpenedBatch,
    Opening,
    open_batch,
)
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import TimestampAndOffset
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.timer.sliced_work import Wait
from tests.support.disks.logs import NOW, Disk, append, batch, read_all
from tests.support.disks.managed_logs import DeferredWorkers

timestamps = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(timestamps, st.integers(-2, 45), st.integers(0, 25))
def test_lookups_agree_with_a_scan(batches: list[list[int]], target: int, high_watermark: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Disk(Path(directory)).log({"segment.bytes": "400", "index.interval.bytes": "0"})
        for offsets in batches:
            append(log, *[b"x"] * len(offsets), timestamp=NOW + offsets[0])
        log.update_high_watermark(high_watermark)
        records = read_all(log)
        first = next((record for record in records if record.timestamp >= NOW + target), None)
        found = log.fetch_offset_by_timestamp(NOW + target)
        assert (found and found[:2]) == (first and (first.timestamp, first.offset))
        largest = max(records, key=lambda record: (record.timestamp, -record.offset))
        found = log.fetch_offset_by_timestamp(-3)
        assert found is not None
        assert found[:2] == (largest.timestamp, largest.offset)
        assert all(in_steps(log, each)[0] == log.fetch_offset_by_timestamp(each) for each in (NOW + target, -3))
        bounded = log.fetch_offset_by_timestamp(NOW + target, FetchIsolation.HIGH_WATERMARK)
        visible = first is not None and first.offset < log.high_watermark
        assert (bounded is not None) == visible
        log.discard()


def in_steps(log: UnifiedLog, timestamp: int) -> tuple[TimestampAndOffset | None, list[bool]]:
    """The result of a lookup in steps; and of each step but the last, whether a worker had to open a batch after it."""
    step, opened = FIRST_STEP, list[bool]()
    while True:
        try:
            return log.fetch_offset_by_timestamp(timestamp, step=step), opened
        except LongLookupError as long:
            opened.append(long.opening is not None)
            result = None if long.opening is None else pickle.loads(pickle.dumps(open_batch(long.opening, print)))
            step = long.next_step(result)


def append_dated(log: UnifiedLog, timestamp: int, max_timestamp: int) -> None:
    """One record, in a batch whose header has another max timestamp."""
    payload = RecordBatch(batch(b"v", timestamp=timestamp)).payload
    fields = {"record_count": 1, "base_offset": 0, "last_offset_delta": 0, "attributes": 0}
    records = assemble_batch(payload, base_timestamp=timestamp, max_timestamp=max_timestamp, **fields)
    log.append_as_leader(memoryview(records), 0)


def test_a_max_timestamp_above_the_records_hides_no_later_segment(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append_dated(log, NOW, NOW + 50_000)
    log.roll()
    append(log, b"later", timestamp=NOW + 10)
    assert log.fetch_offset_by_timestamp(NOW + 5) == (NOW + 10, 1, 0)
    log.discard()


def test_the_latest_record_is_found_if_its_header_has_a_larger_timestamp(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append_dated(log, NOW, NOW + 50_000)
    assert log.fetch_offset_by_timestamp(-3) == (NOW, 0, 0)
    log.discard()


def test_records_are_found_whose_batch_says_they_have_no_time(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    for claimed in (-1, 0, NOW - 1):
        append_dated(log, NOW, claimed)
    assert log.fetch_offset_by_timestamp(NOW) == (NOW, 0, 0)
    log.discard()


def test_the_first_record_is_the_latest_of_those_without_timestamps(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    assert log.fetch_offset_by_timestamp(-3) is None
    for _ in range(2):
        append_dated(log, -1, -1)
    assert log.fetch_offset_by_timestamp(-3) == (-1, 0, 0)
    log.discard()


def test_a_batch_that_compaction_has_emptied_has_no_latest_record(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    log.append_as_follower(batch(b"earlier", epoch=0))
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    latest = batch(b"emptied", timestamp=NOW + 10, base_offset=1, epoch=0, **producer)
    log.append_as_follower(memoryview(empty_batch(RecordBatch(latest))))
    assert log.fetch_offset_by_timestamp(-3) is None
    assert log.fetch_offset_by_timestamp(NOW + 10) is None
    assert log.fetch_offset_by_timestamp(NOW) == (NOW, 0, 0)
    log.discard()


def test_records_below_the_log_start_hide_no_later_segment(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append(log, b"deleted", timestamp=NOW + 10)
    append(log, b"kept", timestamp=NOW)
    log.roll()
    append(log, b"later", timestamp=NOW + 20)
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(1, "a DeleteRecords")
    assert log.fetch_offset_by_timestamp(NOW + 5) == (NOW + 20, 2, 0)
    log.discard()


def test_a_step_opens_one_batch_that_promises_too_much(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    for index in range(6):
        append_dated(log, NOW + index, NOW + 50_000)
        if index == 3:
            log.roll()
    append(log, b"later", timestamp=NOW + 10)
    append(log, b"last", timestamp=NOW + 20)
    assert in_steps(log, NOW + 10) == ((NOW + 10, 6, 0), [False] * 6)
    assert in_steps(log, NOW + 21) == (None, [False] * 6)
    assert in_steps(log, NOW) == ((NOW, 0, 0), []), "the usual lookup is one step"
    log.discard()


def test_a_step_reads_a_number_of_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_lookup, "HEADERS_A_STEP", 4)
    log = Disk(tmp_path).log()
    for _ in range(10):
        append(log, b"earlier", timestamp=NOW)
    append(log, b"later", timestamp=NOW + 10)
    assert in_steps(log, NOW + 10) == ((NOW + 10, 10, 0), [False] * 2)
    log.discard()


@pytest.mark.parametrize("limit", [{"OPENED_RECORDS_MAX": 2}, {"OPENED_BYTES_MAX": 20}])
def test_a_worker_opens_large_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]) -> None:
    log = Disk(tmp_path).log()
    log.append_as_leader(batch(b"a", b"b", b"c", timestamp=NOW, compression=1), 0)
    for timestamp in (NOW + 2, -3):
        assert in_steps(log, timestamp) == ((NOW + 2, 2, 0), [])
        with monkeypatch.context() as context:
            for name, most in limit.items():
                context.setattr(offset_lookup, name, most)
            assert in_steps(log, timestamp) == ((NOW + 2, 2, 0), [True])
    log.discard()


def test_after_a_large_batch_without_a_match_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_lookup, "OPENED_RECORDS_MAX", 0)
    log = Disk(tmp_path).log()
    append_dated(log, NOW, NOW + 50_000)
    append(log, b"later", timestamp=NOW + 10)
    assert in_steps(log, NOW + 5) == ((NOW + 10, 1, 0), [True, True])
    log.discard()


def test_a_wrapper_that_becomes_large_is_opened_by_a_worker() -> None:
    messages = build_message(1, 0, NOW, None, None) * (offset_lookup.OPENED_WRAPPER_BYTES_MAX // 34 + 1)
    wrapper = build_message(1, 0, NOW, None, compress(1, messages), compression_type=1)
    with pytest.raises(LongLookupError) as long:
        offset_lookup._found_in(LegacyBatch(memoryview(wrapper)), NOW, 0, FIRST_STEP)
    assert long.value.opening is not None
    assert open_batch(long.value.opening, print).found == (NOW, 0, -1)


def test_a_batch_that_cannot_be_opened_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Disk(tmp_path).log()
    fields = {"record_count": 9, "base_offset": 0, "last_offset_delta": 8, "attributes": 1}
    broken = assemble_batch(b"no gzip", base_timestamp=NOW, max_timestamp=NOW, **fields)
    log.append_as_leader(memoryview(broken), 0)
    for most in (9, 0):
        monkeypatch.setattr(offset_lookup, "OPENED_RECORDS_MAX", most)
        with pytest.raises(KafkaError) as refused:
            in_steps(log, NOW)
        assert refused.value.code == ErrorCode.INVALID_RECORD
    log.discard()


def test_the_first_offset_of_a_batch_that_is_too_large_to_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Disk(tmp_path).log()
    append(log, b"earlier", timestamp=NOW)
    log.append_as_leader(batch(b"a", b"b", b"c", timestamp=NOW + 10, compression=1), 0)
    append(log, b"later", timestamp=NOW + 12)
    assert in_steps(log, NOW + 11) == ((NOW + 11, 2, 0), [])
    for name in ("MAX_DECOMPRESSED_BYTES", "OPENED_BYTES_MAX"):
        monkeypatch.setattr(offset_lookup, name, 20)
    assert in_steps(log, NOW + 11) == ((NOW + 12, 1, 0), [True])
    assert in_steps(log, -3) == ((NOW + 12, 1, 0), [True])
    log.update_high_watermark(4)
    log.maybe_increment_log_start_offset(3, "a DeleteRecords")
    assert in_steps(log, NOW + 11) == ((NOW + 12, 3, 0), [True]), "no offset below the log start"
    log.discard()


def test_a_few_batches_are_opened_at_a_time() -> None:
    workers = DeferredWorkers()
    lookups = LongLookups(workers)
    results: list[OpenedBatch] = []

    def ask(offset: int) -> None:
        work = lookups.wait_for(Opening(bytes(batch(b"a", base_offset=offset)), NOW, 0))
        wait = next(work)
        assert isinstance(wait, Wait)

        def end() -> None:
            with pytest.raises(StopIteration) as ended:
                next(work)
            results.append(ended.value.value)

        wait.begin(end)

    for offset in range(WORKERS + 1):
        ask(offset)
    assert len(workers.jobs) == WORKERS
    workers.jobs[1].run()
    assert len(workers.jobs) == WORKERS + 1
    workers.jobs[0].done(WorkerError("died"))
    workers.jobs[2].run()
    assert [each.found for each in results] == [(NOW, 1, -1), None, (NOW, 2, -1)]
    assert results[1].refusal is not None
    assert results[1].refusal[0] == ErrorCode.UNKNOWN_SERVER_ERROR
