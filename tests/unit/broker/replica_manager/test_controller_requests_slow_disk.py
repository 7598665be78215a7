"""A disk whose changes of directories wait: the event loop makes none of them, and goes on meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.disks.gated_disk import GatedFileSystem
from tests.support.in_process.in_process_broker import InProcessBroker, Waiting, in_process_broker
from tests.support.wire.requests import batch, build

TOPIC_ID = bytes(range(16))
OLD, NEW = 1, 2
"""Epochs of the controller; the first one is the epoch of the broker under test."""


class SlowDisk:
    def __init__(self, broker: InProcessBroker, disk: GatedFileSystem, paths: list[Path]) -> None:
        self.broker = broker
        self.disk = disk
        self.paths = paths

    def goes_on(self) -> None:
        """The event loop serves others, and has made no change of directories."""
        self.broker.call(build(ApiKey.API_VERSIONS), 0)
        assert self.disk.on_loop == []

    def wait_for(self, change: str) -> None:
        assert self.broker.settle(lambda: any(each.startswith(change) for each in self.disk.waiting))

    def finish(self, waiting: Waiting) -> None:
        self.disk.open_again()
        self.broker.finish_soon(waiting)
        assert waiting.is_answered

    def names(self) -> list[str]:
        found = [entry.name for path in self.paths for entry in os.scandir(path) if entry.is_dir()]
        return sorted(name if "." not in name else name.rpartition("-")[2] for name in found)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowDisk]:
    disk = GatedFileSystem()
    paths = [tmp_path / "1", tmp_path / "2"]
    settings = {"log.dirs": ",".join(map(str, paths)), "metadata.dir": str(tmp_path)}
    with in_process_broker(tmp_path, settings, fs=disk) as broker:
        yield SlowDisk(broker, disk, paths)
        disk.open_again()


def create(name: str) -> Request:
    return build(
        ApiKey.CREATE_TOPICS,
        topics=[{"name": name, "num_partitions": 3, "replication_factor": 1, "configs": [], "assignments": []}],
        timeout_ms=5_000,
    )


def leader_and_isr(controller_epoch: int, leader_epoch: int = 0) -> Request:
    state = {
        "partition_index": 0,
        "leader": 0,
        "leader_epoch": leader_epoch,
        "isr": [0],
        "replicas": [0],
        "controller_epoch": controller_epoch,
        "is_new": True,
    }
    topic = {"topic_name": "x", "topic_id": TOPIC_ID, "partition_states": [state]}
    return build(
        ApiKey.LEADER_AND_ISR,
        controller_id=0,
        controller_epoch=controller_epoch,
        broker_epoch=-1,
        topic_states=[topic],
    )


def stop_replica(controller_epoch: int) -> Request:
    state = {"partition_index": 0, "leader_epoch": -2, "delete_partition": True}
    return build(
        ApiKey.STOP_REPLICA,
        controller_id=0,
        controller_epoch=controller_epoch,
        broker_epoch=-1,
        topic_states=[{"topic_name": "x", "partition_states": [state]}],
    )


def test_topics_are_created_without_the_loop_waiting(slow: SlowDisk) -> None:
    slow.disk.close()
    waiting = slow.broker.send(create("t"), 7)
    slow.wait_for("make t-")
    slow.goes_on()
    assert not waiting.is_answered
    slow.finish(waiting)
    slow.goes_on()
    assert slow.broker.settle(lambda: slow.names() == ["t-0", "t-1", "t-2"])
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    produced = slow.broker.call(build(ApiKey.PRODUCE, acks=-1, topic_data=data), 11)
    assert produced.responses[0].partition_responses[0].error_code == 0  # type: ignore[attr-defined]


def test_topics_are_deleted_without_the_loop_waiting(slow: SlowDisk) -> None:
    slow.broker.create_topic("t")
    slow.disk.close()
    slow.broker.send(build(ApiKey.DELETE_TOPICS, topics=[{"name": "t"}], timeout_ms=5_000), 6)
    slow.wait_for("rename t-0")
    slow.goes_on()
    assert "t-0" in slow.names()
    assert slow.broker.services.log_manager.get_log(TopicPartition("t", 0)) is None
    slow.disk.open_again()
    assert slow.broker.settle(lambda: slow.names() == ["delete"])
    slow.goes_on()


def test_a_newer_controller_refuses_what_an_older_one_has_prepared(slow: SlowDisk) -> None:
    slow.disk.close()
    older = slow.broker.send(leader_and_isr(OLD), 7)
    slow.wait_for("make x-0")
    stopped = slow.broker.send(stop_replica(NEW), 4)
    slow.goes_on()
    slow.finish(older)
    slow.finish(stopped)
    assert older.answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH  # type: ignore[union-attr]
    assert slow.names() == []
    newer = slow.broker.call(leader_and_isr(NEW, 1), 7)
    assert newer.topics[0].partition_errors[0].error_code == 0  # type: ignore[attr-defined]
    assert slow.names() == ["x-0"]


def test_two_requests_for_one_partition_are_applied_one_after_the_other(slow: SlowDisk) -> None:
    slow.disk.close()
    older = slow.broker.send(leader_and_isr(OLD), 7)
    slow.wait_for("make x-0")
    newer = slow.broker.send(leader_and_isr(NEW, 1), 7)
    slow.goes_on()
    slow.finish(older)
    slow.finish(newer)
    assert older.answer.error_code == 0  # type: ignore[union-attr]
    assert newer.answer.topics[0].partition_errors[0].error_code == 0  # type: ignore[union-attr]
    assert slow.broker.services.replica_manager.partition(TopicPartition("x", 0)).leader_epoch == 1
    assert slow.names() == ["x-0"]


def test_a_new_log_goes_to_another_directory_when_the_first_one_fails(slow: SlowDisk) -> None:
    slow.disk.close()
    slow.disk.failure = lambda: OSError(errno.EIO, os.strerror(errno.EIO))
    waiting = slow.broker.send(leader_and_isr(OLD), 7)
    slow.wait_for("make x-0")
    slow.broker.services.log_manager.log_dirs[0].fail("the disk is gone", OSError())
    slow.disk.failure = None
    slow.finish(waiting)
    assert waiting.answer.topics[0].partition_errors[0].error_code == 0  # type: ignore[union-attr]
    log = slow.broker.services.log_manager.get_log(TopicPartition("x", 0))
    assert log is not None
    assert log.log_dir.path == str(slow.paths[1])


def test_a_move_to_another_directory_begins_without_the_loop_waiting(slow: SlowDisk) -> None:
    slow.broker.call(leader_and_isr(OLD), 7)
    log = slow.broker.services.log_manager.get_log(TopicPartition("x", 0))
    assert log is not None
    (other,) = {str(path) for path in slow.paths} - {log.log_dir.path}
    slow.disk.close()
    dirs = [{"path": other, "topics": [{"name": "x", "partitions": [0]}]}]
    waiting = slow.broker.send(build(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs), 2)
    slow.wait_for("make x-0.")
    slow.goes_on()
    slow.finish(waiting)
    slow.goes_on()
    [topic] = waiting.answer.results  # type: ignore[union-attr]
    assert topic.partitions[0].error_code == 0
    assert [entry.name.partition(".")[0] for entry in os.scandir(other) if entry.is_dir()] == ["x-0"]


def test_a_move_of_a_partition_that_is_deleted_meanwhile_leaves_nothing(slow: SlowDisk) -> None:
    slow.broker.call(leader_and_isr(OLD), 7)
    log = slow.broker.services.log_manager.get_log(TopicPartition("x", 0))
    assert log is not None
    (other,) = {str(path) for path in slow.paths} - {log.log_dir.path}
    slow.disk.close()
    dirs = [{"path": other, "topics": [{"name": "x", "partitions": [0]}]}]
    moving = slow.broker.send(build(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs), 2)
    slow.wait_for("make x-0.")
    stopped = slow.broker.send(stop_replica(OLD), 4)
    slow.goes_on()
    slow.finish(stopped)
    slow.finish(moving)
    [topic] = moving.answer.results  # type: ignore[union-attr]
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert slow.broker.settle(lambda: slow.names() == ["delete"])


def test_a_deletion_that_fails_is_reported(slow: SlowDisk) -> None:
    slow.broker.call(leader_and_isr(OLD), 7)
    slow.disk.close()
    slow.disk.failure = lambda: OSError(errno.EIO, os.strerror(errno.EIO))
    waiting = slow.broker.send(stop_replica(OLD), 4)
    slow.wait_for("rename x-0")
    slow.finish(waiting)
    [answer] = waiting.answer.partition_errors  # type: ignore[union-attr]
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(slow.broker.services.log_manager.live_log_dirs) == 1
