from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.results import LogDeleteRecordsResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.disks.logs import DeferredIoPool, batch
from tests.support.in_process.replication.moving import Moving
from tests.support.in_process.replication.replicas import TP

NONE = ErrorCode.NONE
VALUES = [b"%d" % number for number in range(10)]


@pytest.fixture
def moving(tmp_path: Path) -> Moving:
    moving = Moving(tmp_path)
    moving.lead()
    moving.append(*VALUES)
    return moving


def begun(moving: Moving, directory: int = 1) -> None:
    """A move that a quota keeps from ending."""
    moving.replicas.move_bytes_per_second = -1
    assert moving.alter(directory) == NONE
    moving.replicas.advance(1)
    assert moving.future().log_end_offset == 0


def test_a_replica_moves(moving: Moving) -> None:
    assert moving.where() == 0
    assert moving.alter(1) == NONE
    moving.settle()
    assert moving.where() == 1
    assert moving.values() == VALUES
    assert (moving.log().high_watermark, moving.log().latest_epoch) == (10, 0)
    assert (moving.names(0), moving.names(1)) == (["delete"], [""])
    moving.append(b"after")
    assert moving.values() == [*VALUES, b"after"]
    moving.replicas.advance(60_001)
    assert moving.names(0) == []


def test_an_empty_replica_moves(tmp_path: Path) -> None:
    moving = Moving(tmp_path)
    moving.lead()
    assert moving.alter(2) == NONE
    moving.settle()
    assert moving.where() == 2


def test_to_where_it_is(moving: Moving) -> None:
    assert moving.alter(0) == NONE
    assert moving.partition().future_log is None


def test_to_where_it_is_cancels_a_move(moving: Moving) -> None:
    begun(moving)
    assert moving.alter(0) == NONE
    assert moving.partition().future_log is None
    assert moving.names(1) == ["delete"]
    moving.replicas.move_bytes_per_second = 2**63 - 1
    moving.replicas.advance(5_000)
    assert moving.where() == 0
    assert moving.alter(1) == NONE
    moving.settle()
    assert moving.values() == VALUES


def test_twice_to_the_same_directory_is_one_move(moving: Moving) -> None:
    begun(moving)
    future = moving.future()
    assert moving.alter(1) == NONE
    assert moving.future() is future


def test_to_a_third_directory_replaces_a_move(moving: Moving) -> None:
    begun(moving)
    assert moving.alter(2) == NONE
    assert moving.future().dir.startswith(moving.dirs[2])
    assert moving.names(1) == ["delete"]
    moving.replicas.move_bytes_per_second = 2**63 - 1
    moving.settle()
    assert (moving.where(), moving.values()) == (2, VALUES)


@pytest.mark.parametrize("path", ["/no/such/dir", "relative", "", "0"])
def test_to_a_path_that_is_not_a_log_directory(moving: Moving, path: str) -> None:
    assert moving.alter(path) == ErrorCode.LOG_DIR_NOT_FOUND


def test_to_an_offline_directory(moving: Moving) -> None:
    moving.log_manager.log_dirs[1].fail("test", OSError(5, "broken"))
    assert moving.alter(1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert moving.alter(2) == ErrorCode.KAFKA_STORAGE_ERROR, "a future log may lie in the offline directory"
    assert moving.alter(0) == NONE
    assert moving.values() == VALUES


def test_of_an_offline_partition(moving: Moving) -> None:
    moving.log_manager.log_dirs[0].fail("test", OSError(5, "broken"))
    assert moving.alter(1) == ErrorCode.KAFKA_STORAGE_ERROR


def test_of_a_partition_that_is_not_here_yet(moving: Moving) -> None:
    other, known = TopicPartition("t", 1), TopicPartition("t", 2)
    moving.replicas.know(known, leader=1, replicas=[1])
    assert moving.alter(2, other) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert moving.alter(2, known) == ErrorCode.REPLICA_NOT_AVAILABLE
    for partition in (other, known):
        moving.replicas.lead(partition)
        assert moving.where(partition) == 2


@pytest.mark.parametrize(("length", "error"), [(213, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (214, 17)])
def test_of_a_topic_with_a_long_name(moving: Moving, length: int, error: ErrorCode) -> None:
    """topic-0.<32 hex>-future: 42 more."""
    assert moving.alter(1, TopicPartition("x" * length, 0)) == error


def test_the_directory_it_moves_to_fails(moving: Moving) -> None:
    begun(moving)
    moving.log_manager.log_dirs[1].fail("test", OSError(5, "broken"))
    assert moving.partition().future_log is None
    moving.append(b"after")
    assert moving.values() == [*VALUES, b"after"]


def test_the_directory_it_is_in_fails(moving: Moving) -> None:
    begun(moving)
    moving.log_manager.log_dirs[0].fail("test", OSError(5, "broken"))
    assert moving.replicas.manager.partitions.is_offline(TP)
    moving.replicas.move_bytes_per_second = 2**63 - 1
    moving.replicas.advance(10_000)
    assert moving.names(1) == ["future"], "for the next start"


def test_a_deleted_partition_takes_its_future_log_along(moving: Moving) -> None:
    begun(moving)
    assert moving.replicas.stop(delete=True) == NONE
    assert (moving.names(0), moving.names(1)) == (["delete"], ["delete"])
    assert moving.log_manager.all_logs() == []
    moving.replicas.advance(10_000)


def test_a_stopped_partition_goes_on_with_the_next_leader_epoch(moving: Moving) -> None:
    begun(moving)
    assert moving.replicas.stop(delete=False) == NONE
    moving.replicas.move_bytes_per_second = 2**63 - 1
    moving.replicas.advance(10_000)
    assert moving.future().log_end_offset == 0
    moving.lead(epoch=1)
    moving.settle()
    assert (moving.where(), moving.values()) == (1, VALUES)


def test_a_new_leader_epoch_restarts_the_move_and_the_same_one_does_not(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    moving = Moving(tmp_path, pool=pool, fetch_max_bytes=300_000)
    moving.lead()
    moving.append(b"x" * 290_000, b"y")
    assert moving.alter(1) == NONE
    moving.replicas.advance(1)
    assert moving.replicas.lead(epoch=0, partition_epoch=0) == ErrorCode.STALE_CONTROLLER_EPOCH
    moving.lead(epoch=1)
    pool.run_all()
    assert moving.future().log_end_offset == 0, "records read under the old epoch are not appended"
    moving.settle()
    assert moving.where() == 1
    assert moving.log().log_end_offset == 2


def test_a_move_goes_on_after_a_restart(moving: Moving) -> None:
    begun(moving)
    again = moving.restart()
    assert again.log_manager.get_log(TP, is_future=True) is not None
    again.replicas.advance(10_000)
    again.lead(epoch=1)
    again.settle()
    assert (again.where(), again.values()) == (1, VALUES)


def test_a_future_log_of_another_topic_of_the_name_is_left_alone(moving: Moving) -> None:
    begun(moving)
    again = moving.restart()
    metadata = next(Path(moving.dirs[1]).glob("t-0*")) / "partition.metadata"
    for log_dir in again.log_manager.log_dirs:
        log_dir.unlock()
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ")
    last = Moving(Path(moving.dirs[0]).parent)
    last.lead(epoch=1)
    last.append(b"after")
    assert last.values() == [*VALUES, b"after"]
    assert last.partition().future_log is None


def test_a_future_log_without_a_current_one_is_truncated_to_the_new_log(moving: Moving) -> None:
    """As in Apache Kafka: the content of the lost log is unknown."""
    begun(moving)
    moving.replicas.move_bytes_per_second = 2**63 - 1
    moving.append(b"more")
    path = Path(moving.dirs[0]) / "t-0"
    again = moving.restart()
    for log_dir in again.log_manager.log_dirs:
        log_dir.unlock()
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
    last = Moving(path.parents[1])
    last.lead(epoch=1, directory=2)
    last.settle()
    assert (last.where(), last.values()) == (1, [])


def test_deleted_records_do_not_come_back_with_the_future_log(moving: Moving) -> None:
    begun(moving)
    answers: list[LogDeleteRecordsResult] = []
    moving.replicas.manager.delete_records(30_000, {TP: 4}, lambda results: answers.append(results[TP]))
    assert answers == [], "the future log has not deleted them yet"
    moving.replicas.move_bytes_per_second = 2**63 - 1
    moving.settle()
    assert [(answer.error, answer.low_watermark) for answer in answers] == [(NONE, 4)]
    assert (moving.log().log_start_offset, moving.values()) == (4, VALUES[4:])


def test_a_waiting_delete_records_is_answered_when_the_move_is_cancelled(moving: Moving) -> None:
    begun(moving)
    answers: list[LogDeleteRecordsResult] = []
    moving.replicas.manager.delete_records(30_000, {TP: 4}, lambda results: answers.append(results[TP]))
    assert moving.alter(0) == NONE
    assert [(answer.error, answer.low_watermark) for answer in answers] == [(NONE, 4)]


def test_a_waiting_fetch_goes_on_in_the_new_files(tmp_path: Path) -> None:
    moving = Moving(tmp_path, {"segment.bytes": "200"})
    moving.lead()
    moving.append(*VALUES)
    moving.log().delete_records(5)  # the future log begins there: its segments have other names
    answers = moving.replicas.fetch(10, max_wait_ms=500)
    assert moving.alter(1) == NONE
    moving.settle()
    assert answers == []
    moving.append(b"after")
    assert [answer.size_in_bytes > 0 for answer in answers] == [True]


def test_a_waiting_flush_is_answered_by_the_new_log(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    moving = Moving(tmp_path, {"flush.messages": "1"}, pool=pool)
    moving.lead()
    pool.run_all()
    assert moving.alter(1) == NONE
    answers = moving.replicas.append(batch(b"flushed"))
    assert answers == []
    moving.settle()
    assert [answer.error for answer in answers] == [NONE]
    assert (moving.where(), moving.log().recovery_point) == (1, 1)
