"""A Produce over several partitions that waits for its replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.results import LogAppendResult
from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TP, Replicas

OTHER = TopicPartition("t", 1)
NONE = ErrorCode.NONE


class Waiting:
    """An append to two partitions, each with a follower on broker 1."""

    def __init__(self, path: Path) -> None:
        self.replicas = Replicas(path)
        for tp in (TP, OTHER):
            self.replicas.lead(tp, replicas=[0, 1])
        self.answer: dict[TopicPartition, LogAppendResult] = {}
        self.replicas.manager.append(
            timeout_ms=100,
            required_acks=-1,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            records={TP: batch(b"a"), OTHER: batch(b"b"), TopicPartition("none", 0): batch(b"c")},
            respond=self.answer.update,
        )

    @property
    def errors(self) -> list[ErrorCode]:
        return [self.answer[tp].error for tp in (TP, OTHER, TopicPartition("none", 0))]


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_waits_for_every_partition(waiting: Waiting) -> None:
    waiting.replicas.fetch(1, TP, replica_id=1)
    assert waiting.answer == {}
    waiting.replicas.fetch(1, OTHER, replica_id=1)
    assert waiting.errors == [NONE, NONE, UNKNOWN]


def test_time_out_is_for_those_that_are_still_open(waiting: Waiting) -> None:
    waiting.replicas.fetch(1, TP, replica_id=1)
    waiting.replicas.advance(101)
    assert waiting.errors == [NONE, ErrorCode.REQUEST_TIMED_OUT, UNKNOWN]
    assert waiting.answer[OTHER].info.first_offset == 0, "it is in the log nevertheless"


def test_partitions_that_ran_out_of_time_are_counted(waiting: Waiting) -> None:
    stats = waiting.replicas.manager.partitions.topic_stats = BrokerTopicStats()
    waiting.replicas.fetch(1, TP, replica_id=1)
    waiting.replicas.advance(101)
    assert stats.expired_produces == 1
    assert sum(stats.expired_produces_of.values()) == 1


def test_partition_whose_leadership_moved_gets_that_error(waiting: Waiting) -> None:
    waiting.replicas.follow(TP, epoch=1, partition_epoch=1)
    waiting.replicas.fetch(1, OTHER, replica_id=1)
    assert waiting.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER, NONE, UNKNOWN]


def test_partition_whose_directory_failed_gets_that_error(waiting: Waiting) -> None:
    waiting.replicas.manager.handle_log_dir_failure([TP])
    waiting.replicas.fetch(1, OTHER, replica_id=1)
    assert waiting.errors == [ErrorCode.KAFKA_STORAGE_ERROR, NONE, UNKNOWN]
