"""The I/O pool reads index pages and batch headers that may not be in memory, before a fetch uses them."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.fetch import cold_reads
from odradek.broker.fetch.cold_reads import RECENT_RECORDS, WARM_MS
from odradek.broker.fetch.results import LogReadResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.file_records import FileRecords
from tests.support.disks.logs import NOW, DeferredIoPool, batch
from tests.support.disks.unreadable import make_unreadable
from tests.support.in_process.replication.replicas import TP, Replicas, offsets_of

IN_BATCH = 100
OLD = 200
"""An offset with more records behind it than are assumed to be in memory."""


class Cold:
    """A log whose beginning may not be in memory. `has_headers` decides whether its batch headers are."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pool = DeferredIoPool()
        self.replicas = Replicas(path, {"segment.bytes": "20000"}, io_pool=self.pool)
        self.replicas.lead()
        for _ in range(0, 2 * RECENT_RECORDS, IN_BATCH):
            self.replicas.append(batch(*[b"v" * 20] * IN_BATCH))
        self.pool.run_all()
        self.has_headers = True
        monkeypatch.setattr(cold_reads, "is_in_memory", lambda *_: self.has_headers)
        log = self.replicas.manager.partition(TP).log
        assert log is not None
        self.log = log
        assert len(log.segments) > 2

    def fetch(self, offset: int = OLD) -> list[LogReadResult]:
        return self.replicas.fetch(offset)


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cold:
    return Cold(tmp_path, monkeypatch)


def test_the_index_is_read_in_the_pool_first_and_then_taken_for_being_there(cold: Cold) -> None:
    answers = cold.fetch()
    assert (answers, len(cold.pool.pending)) == ([], 1)
    cold.pool.run_all()
    assert offsets_of(answers[0])[0] == OLD
    assert cold.fetch()
    cold.replicas.advance(WARM_MS)
    assert not cold.fetch()
    cold.pool.run_all()


def test_another_segment_has_another_index(cold: Cold) -> None:
    cold.fetch(0)
    cold.pool.run_all()
    answers = cold.fetch(cold.log.segments.base_offsets[1] - 1)
    assert answers
    answers = cold.fetch(cold.log.segments.base_offsets[1])
    assert not answers
    cold.pool.run_all()
    assert answers


def test_the_end_of_a_log_is_taken_for_being_there(cold: Cold) -> None:
    end = cold.log.log_end_offset
    assert cold.fetch(end - RECENT_RECORDS)
    assert not cold.fetch(end - RECENT_RECORDS - 1)
    cold.pool.run_all()


def test_headers_that_are_not_there_are_read_ahead_and_their_file_kept_open(cold: Cold) -> None:
    cold.fetch()
    cold.pool.run_all()
    cold.has_headers = False
    answers = cold.fetch()
    assert (answers, len(cold.pool.pending)) == ([], 1)
    segment = cold.log.segments.floor(OLD)
    assert segment is not None
    assert not segment.records.evict()
    cold.pool.run_all()
    assert offsets_of(answers[0])[0] == OLD
    assert segment.records.evict()


def test_headers_that_are_needed_and_not_read_keep_no_file_open(cold: Cold) -> None:
    """ListOffsets only asks whether anything is needed."""
    reads = cold.replicas.manager.reads.cold_reads
    reads.warm_lookups([(TP, NOW)], lambda: None)
    cold.pool.run_all()
    cold.has_headers = False
    assert reads.lookups_needed([(TP, NOW)]) is not None
    assert cold.log.segments.first.records.evict()


def test_headers_are_left_out_without_a_free_descriptor(cold: Cold, monkeypatch: pytest.MonkeyPatch) -> None:
    cold.fetch()
    cold.pool.run_all()
    cold.has_headers = False

    def fail(records: FileRecords) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(FileRecords, "pin_for_client", fail)
    answers: list[str] = []
    cold.replicas.manager.reads.cold_reads.warm_lookups([(TP, NOW)], partial(answers.append, "now"))
    cold.pool.run_all()
    assert answers == ["now"]


def test_both_may_be_missing(cold: Cold) -> None:
    cold.has_headers = False
    answers = cold.fetch()
    cold.pool.run_one()
    assert not answers
    cold.pool.run_one()
    assert answers


def test_a_lookup_by_time_reads_the_indexes_and_then_the_headers_in_the_pool(cold: Cold) -> None:
    cold.has_headers = False
    for timestamp in (NOW, -3):
        for segment in cold.log.segments:
            segment.warm_until_ms = 0
        answers: list[str] = []
        cold.replicas.manager.reads.cold_reads.warm_lookups([(TP, timestamp)], partial(answers.append, "now"))
        cold.pool.run_one()
        assert not answers
        cold.pool.run_one()
        assert answers == ["now"]
    assert cold.log.segments.first.warm_until_ms == cold.replicas.disk.clock.monotonic_ms() + WARM_MS


def test_ends_of_time_indexes_that_are_not_known_are_read_first(cold: Cold) -> None:
    segment = cold.log.segments.first
    segment._largest = segment.time_index._last = None
    answers: list[str] = []
    cold.replicas.manager.reads.cold_reads.warm_lookups([(TP, NOW)], lambda: answers.append("now"))
    assert not segment.time_index.knows_its_end
    assert cold.pool.run_all() == 2
    assert answers == ["now"]


def test_a_lookup_that_is_found_reads_no_end_behind_it(cold: Cold) -> None:
    cold_reads = cold.replicas.manager.reads.cold_reads
    first, second, *_ = cold.log.segments
    cold_reads.warm_lookups([(TP, NOW)], lambda: None)
    cold.pool.run_all()
    assert cold.log.segments.first_from_time(NOW) is first
    second._largest = second.time_index._last = None
    assert cold_reads.lookups_needed([(TP, NOW)]) is None
    assert cold_reads.lookups_needed([(TP, -3)]) is not None


def test_a_lookup_of_an_unknown_partition_is_answered_at_once(cold: Cold) -> None:
    answers: list[str] = []
    lookups = [(TopicPartition("t", 7), NOW), (TP, NOW + 10**9)]
    cold.replicas.manager.reads.cold_reads.warm_lookups(lookups, lambda: answers.append("now"))
    assert answers == ["now"]


def test_offsets_outside_are_refused_at_once(cold: Cold) -> None:
    assert [answer.error for answer in cold.fetch(-1)] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    cold.log.maybe_increment_log_start_offset(OLD + 1, "test")
    assert [answer.error for answer in cold.fetch()] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_a_file_that_cannot_be_read_is_left_to_the_read_itself(cold: Cold) -> None:
    segment = cold.log.segments.floor(OLD)
    assert segment is not None
    segment.records.evict()
    os.unlink(segment.records.path)
    answers = cold.fetch()
    cold.pool.run_all()
    assert [answer.error for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]


@pytest.mark.parametrize("suffix", [".index", ".log"])
def test_a_read_that_fails_takes_the_directory_offline(
    cold: Cold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    segment = cold.log.segments.floor(OLD)
    assert segment is not None
    segment.offset_index.evict()
    cold.has_headers = suffix == ".index"
    make_unreadable(monkeypatch, tmp_path, suffix)
    answers = cold.fetch()
    cold.pool.run_all()
    assert [answer.error for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert not cold.log.log_dir.is_online
    if suffix == ".index":
        assert not segment.offset_index.is_open, "the page that cannot be read is not touched through the map"


def test_after_a_read_that_fails_the_others_of_the_call_are_done(
    cold: Cold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = make_unreadable(monkeypatch, tmp_path, ".index")
    answers: list[str] = []
    cold.replicas.manager.reads.cold_reads.warm_lookups([(TP, NOW)], partial(answers.append, "now"))
    cold.pool.run_one()
    assert [Path(name).suffix for name in names] == [".index", ".timeindex"]
    assert answers == ["now"], "of a log in an offline directory nothing more is read"
    assert not cold.log.log_dir.is_online


def test_an_index_that_cannot_be_opened_is_left_to_the_read_itself(cold: Cold, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file = os.open

    def fail_to_read(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            return open_file(path, flags, mode)
        raise OSError(errno.EMFILE, "too many open files")

    answers = cold.fetch()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fail_to_read)
        cold.pool.run_one()
    assert offsets_of(answers[0])[0] == OLD
    assert cold.log.log_dir.is_online


def test_a_partition_that_goes_meanwhile_is_answered_as_it_is_then(cold: Cold) -> None:
    answers = cold.fetch()
    cold.replicas.manager.handle_log_dir_failure([TP])
    cold.pool.run_all()
    assert [answer.error for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]
