"""Aborted transactions and the last stable offset, compared with those of the log that wrote the files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.records.batch import batches
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from spark_jobs.kafka_log import transactions
from spark_jobs.kafka_log.segments import Segment
from spark_jobs.kafka_log.transactions import TransactionFiles
from tests.support.disks.logs import Disk, append, read_bytes
from tests.support.kafka_log import (
    append_transactional,
    end_transaction,
    files_opened,
    offsets,
    rows,
    write_high_watermark,
    write_recovery_point,
)

STEPS = st.lists(
    st.tuples(st.sampled_from(["data", "data", "abort", "commit", "plain", "roll"]), st.integers(1, 3)),
    min_size=1,
    max_size=25,
)


def write(log: UnifiedLog, steps: list[tuple[str, int]]) -> None:
    """Appends of three producers, and segments that roll in between."""
    sequences = {1: 0, 2: 0, 3: 0}
    for step, producer_id in steps:
        match step:
            case "data":
                append_transactional(log, producer_id, b"x", b"y", sequence=sequences[producer_id])
                sequences[producer_id] += 2
            case "abort":
                end_transaction(log, producer_id, ControlRecordType.ABORT)
            case "commit":
                end_transaction(log, producer_id, ControlRecordType.COMMIT)
            case "plain":
                append(log, b"z")
            case _:
                log.roll()


def committed(log: UnifiedLog) -> list[int]:
    """The offsets that a consumer with read_committed hands out, by the aborted transactions that a fetch names."""
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.limit_of(FetchIsolation.TXN_COMMITTED):
        fetched = log.read(offset, 150, FetchIsolation.TXN_COMMITTED, True)
        aborted = {(each.producer_id, each.first_offset) for each in fetched.aborted_transactions or ()}
        open_aborts: set[int] = set()
        for each in batches(memoryview(read_bytes(fetched))):
            open_aborts |= {pid for pid, first in aborted if first <= each.last_offset and pid == each.producer_id}
            if each.is_control:
                open_aborts.discard(each.producer_id)
                aborted = {
                    (pid, first) for pid, first in aborted if pid != each.producer_id or first > each.last_offset
                }
            elif each.producer_id not in open_aborts or not each.is_transactional:
                found += range(each.base_offset, each.next_offset)
            offset = each.next_offset
    return found


def aborted_by_markers(log: UnifiedLog) -> set[int]:
    """The offsets whose producer's next marker is ABORT, control records included."""
    found: set[int] = set()
    pending: dict[int, list[int]] = {}
    for path in sorted(Path(log.dir).glob("*.log")):
        for each in batches(memoryview(path.read_bytes())):
            if not each.is_transactional:
                continue
            pending.setdefault(each.producer_id, []).extend(range(each.base_offset, each.next_offset))
            if each.is_control:
                offsets_of_it = pending.pop(each.producer_id)
                (record,) = each.records()
                if ControlRecordType.parse(record.key) is ControlRecordType.ABORT:
                    found |= set(offsets_of_it)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, state=st.sampled_from(["live", "flushed", "clean", "no indexes", "no snapshots"]))
def test_rows_are_those_of_a_consumer(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], state: str
) -> None:
    """Whatever the directory still has: a live one, one that is flushed, closed, or copied in part."""
    path = tmp_path_factory.mktemp("data")
    log = Disk(path).log()
    write(log, steps)
    end = log.log_end_offset
    log.update_high_watermark(end)
    write_high_watermark(path, end)
    expected, aborted = committed(log), aborted_by_markers(log)
    if state == "flushed":
        write_recovery_point(path, log.segments.active.base_offset)
    elif state == "clean":
        log.close()
        (path / ".kafka_cleanshutdown").touch()
    elif state in ("no indexes", "no snapshots"):
        for pattern in ("*.*index", "*.snapshot") if state == "no indexes" else ("*.snapshot",):
            for file in Path(log.dir).glob(pattern):
                file.unlink()
    assert offsets(path, isolationLevel="read_committed") == expected
    assert {row["offset"] for row in rows(path, includeControl=True) if row["isAborted"]} == aborted


def aborted_over_segments(tmp_path: Path) -> tuple[UnifiedLog, list[int]]:
    """A transaction over two segments, its ABORT in the third; two more segments behind it. The offsets that stay."""
    log = Disk(tmp_path).log()
    append_transactional(log, 1, b"a", sequence=0)
    append(log, b"plain")
    log.roll()
    append_transactional(log, 1, b"b", sequence=1)
    log.roll()
    end_transaction(log, 1, ControlRecordType.ABORT)
    for _ in range(2):
        log.roll()
        append(log, b"more")
    log.update_high_watermark(log.log_end_offset)
    write_high_watermark(tmp_path, log.log_end_offset)
    return log, [1, 4, 5]


def test_no_more_segments_are_looked_at_than_the_transaction_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, expected = aborted_over_segments(tmp_path)
    write_recovery_point(tmp_path, log.log_end_offset)
    with files_opened(monkeypatch) as names:
        assert offsets(tmp_path, isolationLevel="read_committed", endingOffset=2) == [1]
    assert [int(name[:20]) for name in names] == [5, 0], "the end of the log for the stable offset, and the segment"
    for path in Path(log.dir).glob("*.txnindex"):
        path.unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    for path in Path(log.dir).glob("*.snapshot"):
        path.unlink()
    with files_opened(monkeypatch) as names:
        assert offsets(tmp_path, endingOffset=2) == [0, 1]
    assert [int(name[:20]) for name in names] == [0, 0, 2, 3], "the markers decide: up to the one that ends it"
    assert offsets(tmp_path, isolationLevel="read_committed") == expected


@pytest.mark.parametrize("has_index", [True, False])
def test_a_range_that_ends_inside_the_first_batch_of_an_aborted_transaction(tmp_path: Path, has_index: bool) -> None:
    log = Disk(tmp_path).log()
    append(log, b"plain")
    append_transactional(log, 1, b"a", b"b", b"c", sequence=0)
    end_transaction(log, 1, ControlRecordType.ABORT)
    log.update_high_watermark(log.log_end_offset)
    write_high_watermark(tmp_path, log.log_end_offset)
    if not has_index:
        for path in Path(log.dir).glob("*.txnindex"):
            path.unlink()
    assert offsets(tmp_path, isolationLevel="read_committed", endingOffset=2) == [0]
    assert [row["isAborted"] for row in rows(tmp_path, endingOffset=3)] == [False, True, True]


def test_an_open_transaction_holds_read_committed_back(tmp_path: Path) -> None:
    log = Disk(tmp_path).log()
    append(log, b"first")
    append_transactional(log, 1, b"open", sequence=0)
    append(log, b"behind it")
    log.update_high_watermark(3)
    write_high_watermark(tmp_path, 3)
    assert offsets(tmp_path, isolationLevel="read_committed") == [0]
    found = rows(tmp_path)
    assert [(row["offset"], row["isTransactional"], row["isAborted"]) for row in found] == [
        (0, False, False),
        (1, True, False),
        (2, False, False),
    ]
    end_transaction(log, 1, ControlRecordType.COMMIT)
    assert offsets(tmp_path, isolationLevel="read_committed") == [0], "the marker is beyond the high watermark"
    write_high_watermark(tmp_path, 4)
    assert offsets(tmp_path, isolationLevel="read_committed") == [0, 1, 2]


def test_a_corrupt_index_of_transactions_is_not_believed(tmp_path: Path) -> None:
    log, expected = aborted_over_segments(tmp_path)
    write_recovery_point(tmp_path, log.log_end_offset)
    (index,) = Path(log.dir).glob("*.txnindex")
    index.write_bytes(b"\xff" * 34)
    assert offsets(tmp_path, isolationLevel="read_committed") == expected


def test_a_segment_that_is_replaced_is_read_with_its_own_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening of a segment and that of its index of transactions, a compaction removes the aborted records
    together with the index: the old file must not be read with the new index."""
    log, expected = aborted_over_segments(tmp_path)
    write_recovery_point(tmp_path, log.log_end_offset)
    original = TransactionFiles.aborted_in
    calls = []

    def compacted_first(self: TransactionFiles, *arguments: object) -> object:
        if not calls:
            first = Path(log.dir, f"{0:020d}.log")
            kept = [each for each in batches(memoryview(first.read_bytes())) if each.base_offset == 1]
            first.rename(first.with_suffix(".log.deleted"))
            first.write_bytes(b"".join(bytes(each.buffer) for each in kept))
            for path in Path(log.dir).glob("*.txnindex"):
                path.unlink()
            second = Path(log.dir, f"{2:020d}.log")
            second.write_bytes(b"")
        calls.append(arguments)
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TransactionFiles, "aborted_in", compacted_first)
    assert offsets(tmp_path, isolationLevel="read_committed") == expected
    assert calls


def test_a_copy_of_a_log_without_any_other_file(tmp_path: Path) -> None:
    log, expected = aborted_over_segments(tmp_path / "data")
    copy = tmp_path / "copy" / "topic-0"
    copy.mkdir(parents=True)
    for path in Path(log.dir).glob("*.log"):
        shutil.copy(path, copy)
    assert offsets(tmp_path / "copy", isolationLevel="read_committed") == expected


def test_a_segment_behind_that_is_replaced_meanwhile_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of transactions has no name for a moment: that must not look like no aborted transactions."""
    log, expected = aborted_over_segments(tmp_path)
    write_recovery_point(tmp_path, log.log_end_offset)
    original = transactions._index
    moments = []

    def in_the_middle(segment: Segment) -> object:
        if segment.base_offset != 3 or moments:
            return original(segment)
        moments.append(segment)
        path, index = Path(segment.path), Path(segment.beside(".txnindex"))
        copy = path.with_suffix(".copy")
        shutil.copy(path, copy)
        copy.replace(path)
        hidden = index.rename(f"{index}.hidden")
        found = original(segment)
        hidden.rename(index)
        return found

    monkeypatch.setattr(transactions, "_index", in_the_middle)
    assert offsets(tmp_path, isolationLevel="read_committed") == expected
    assert moments


def test_an_index_of_transactions_that_a_compaction_has_not_renamed_yet(tmp_path: Path) -> None:
    log, expected = aborted_over_segments(tmp_path)
    write_recovery_point(tmp_path, log.log_end_offset)
    (index,) = Path(log.dir).glob("*.txnindex")
    index.rename(f"{index}.swap")
    assert offsets(tmp_path, isolationLevel="read_committed") == expected
