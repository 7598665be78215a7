"""A DeleteRecords that waits for the log starts of the followers."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.results import LogDeleteRecordsResult
from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TP, Replicas

NONE = ErrorCode.NONE


class Waiting:
    """Two records, both replicated to broker 1; those before an offset are to be deleted."""

    def __init__(self, path: Path, *, before_offset: int = 1) -> None:
        self.replicas = Replicas(path)
        self.replicas.lead(replicas=[0, 1])
        self.replicas.append(batch(b"a", b"b"))
        self.follow(log_start_offset=0)
        self.answer: dict[TopicPartition, LogDeleteRecordsResult] = {}
        self.replicas.manager.delete_records(100, {TP: before_offset}, self.answer.update)

    def follow(self, *, log_start_offset: int) -> None:
        self.replicas.fetch(2, replica_id=1, log_start_offset=log_start_offset)


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def test_done_when_the_follower_has_moved_its_log_start(waiting: Waiting) -> None:
    assert waiting.answer == {}
    waiting.follow(log_start_offset=1)
    assert (waiting.answer[TP].error, waiting.answer[TP].low_watermark) == (NONE, 1)


def test_time_out_tells_the_low_watermark_of_the_beginning(tmp_path: Path) -> None:
    """A low watermark that has moved meanwhile, and not far enough, is not told: as in Apache Kafka."""
    waiting = Waiting(tmp_path, before_offset=2)
    waiting.follow(log_start_offset=1)
    stats = waiting.replicas.manager.partitions.topic_stats = BrokerTopicStats()
    waiting.replicas.advance(101)
    assert stats.expired_delete_records == 1
    assert (waiting.answer[TP].error, waiting.answer[TP].low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_leadership_that_moved_ends_the_wait(waiting: Waiting) -> None:
    waiting.replicas.follow(epoch=1, partition_epoch=1)
    assert (waiting.answer[TP].error, waiting.answer[TP].low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_replica_that_is_deleted_ends_the_wait(waiting: Waiting) -> None:
    assert waiting.replicas.stop(delete=True) == NONE
    assert waiting.replicas.cache.contains_partition(*TP)
    assert (waiting.answer[TP].error, waiting.answer[TP].low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
