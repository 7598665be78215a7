"""Events that raise a high watermark without an append or a fetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.results import LogAppendResult, LogDeleteRecordsResult, LogReadResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.disks.logs import batch
from tests.support.in_process.replication.replicas import TP, Replicas

NONE = ErrorCode.NONE
LAG_MS = 30_000
OTHER = TopicPartition("t", 1)
LONG_MS = 10 * LAG_MS


class Stuck:
    """This broker and broker 1 are in sync. Broker 2 had caught up, but the controller refused it, as it refuses a
    broker that is stopping. Then broker 2 stopped, and a producer waits for a record that broker 2 does not have.
    """

    def __init__(self, path: Path) -> None:
        self.replicas = Replicas(path, {"min.insync.replicas": "2"})
        self.replicas.manager.startup()
        self.lead()
        self.answers = self.replicas.append(batch(b"a"), acks=-1, timeout_ms=LONG_MS)
        self.consumer = self.replicas.fetch(0, max_wait_ms=LONG_MS)
        self.replicas.fetch(1, replica_id=1)
        self.replicas.proposals.clear()

    def lead(self, tp: TopicPartition = TP) -> None:
        self.replicas.lead(tp, replicas=[0, 1, 2], isr=[0, 1])
        self.replicas.fetch(0, tp, replica_id=2)
        self.replicas.proposals.pop().respond(ErrorCode.INELIGIBLE_REPLICA)

    def die(self, *broker_ids: int) -> None:
        """As an UpdateMetadata does."""
        alive = [broker_id for broker_id in (0, 1, 2) if broker_id not in broker_ids]
        self.replicas.know(TP, replicas=[0, 1, 2], alive=alive)
        self.replicas.manager.high_watermark_reviews.brokers_died(frozenset(broker_ids))

    @property
    def outcome(self) -> tuple[list[ErrorCode], list[int]]:
        """The producer's answer, and the high watermark in the consumer's answer."""
        return errors(self.answers), [answer.high_watermark for answer in self.consumer]


def errors(answers: list[LogAppendResult] | list[LogReadResult]) -> list[ErrorCode]:
    return [answer.error for answer in answers]


WAITING: tuple[list[ErrorCode], list[int]] = ([], [])
COMMITTED: tuple[list[ErrorCode], list[int]] = ([NONE], [1])


@pytest.fixture
def stuck(tmp_path: Path) -> Stuck:
    return Stuck(tmp_path)


def test_death_of_a_follower_that_was_waited_for(stuck: Stuck) -> None:
    assert stuck.outcome == WAITING
    stuck.die(2)
    assert stuck.outcome == COMMITTED


def test_death_of_a_broker_without_a_replica_here_is_not_looked_at(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    monkeypatch.setattr(type(stuck.replicas.manager.high_watermark_reviews), "_check", lambda *_: looks.append(_))
    stuck.die(3)
    stuck.die()
    assert looks == []


def test_lag_time_that_is_used_up(stuck: Stuck) -> None:
    for _ in range(2):
        stuck.replicas.advance(LAG_MS // 2)
    assert stuck.outcome == WAITING
    stuck.replicas.fetch(1, replica_id=1)
    stuck.replicas.advance(LAG_MS // 2)
    assert stuck.outcome == COMMITTED
    assert stuck.replicas.proposals == [], "the ISR has not changed"


def test_isr_that_is_not_to_grow_after_all(tmp_path: Path) -> None:
    """Broker 2 is in the ISR that was proposed, and is dead when the controller refuses it."""
    stuck = Stuck(tmp_path)
    stuck.replicas.fetch(0, replica_id=2)
    proposal = stuck.replicas.proposals.pop()
    stuck.die(2)
    assert stuck.outcome == WAITING, "the controller may have written the ISR with it"
    proposal.respond(ErrorCode.INELIGIBLE_REPLICA)
    assert stuck.outcome == COMMITTED


class UnderMinIsr:
    """A record that every in-sync replica has, while the ISR is too small."""

    def __init__(self, path: Path) -> None:
        self.replicas = Replicas(path, {"min.insync.replicas": "2"})
        self.replicas.lead(replicas=[0, 1], isr=[0])
        self.replicas.append(batch(b"a"))
        self.consumer = self.replicas.fetch(0, max_wait_ms=LONG_MS)


def test_min_insync_replicas_of_the_topic(tmp_path: Path) -> None:
    world = UnderMinIsr(tmp_path)
    manager, log_manager = world.replicas.manager, world.replicas.log_manager
    manager.high_watermark_reviews.topic_config_changed("t")
    assert world.consumer == []
    log_manager.update_topic_config("t", {})  # it was deleted
    manager.high_watermark_reviews.topic_config_changed("another")
    assert world.consumer == []
    manager.high_watermark_reviews.topic_config_changed("t")
    assert [answer.high_watermark for answer in world.consumer] == [1]


def test_min_insync_replicas_of_the_broker(tmp_path: Path) -> None:
    world = UnderMinIsr(tmp_path)
    log_manager, reviews = world.replicas.log_manager, world.replicas.manager.high_watermark_reviews
    log_manager.update_broker_settings({"min.insync.replicas": "2"})
    log_manager.update_topic_config("t", {})
    reviews.topic_config_changed("t")
    assert world.consumer == []
    log_manager.update_broker_settings({"min.insync.replicas": "1"})
    reviews.broker_config_changed()
    assert [answer.high_watermark for answer in world.consumer] == [1]


def test_low_watermark_that_a_dead_broker_held_back(tmp_path: Path) -> None:
    """The high watermark does not move."""
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1])
    replicas.append(batch(b"a", b"b"))
    replicas.fetch(2, replica_id=1, log_start_offset=0)
    answer: dict[TopicPartition, LogDeleteRecordsResult] = {}
    replicas.manager.delete_records(LONG_MS, {TP: 1}, answer.update)
    assert answer == {}
    replicas.know(TP, replicas=[0, 1], alive=[0])
    replicas.manager.high_watermark_reviews.brokers_died({1})
    assert (answer[TP].error, answer[TP].low_watermark) == (NONE, 1)


def test_many_partitions_are_looked_at_a_few_at_a_time(stuck: Stuck) -> None:
    stuck.lead(OTHER)
    answers = stuck.replicas.append(batch(b"b"), OTHER, acks=-1, timeout_ms=LONG_MS)
    stuck.replicas.fetch(1, OTHER, replica_id=1)
    stuck.replicas.manager.high_watermark_reviews.walks.at_once = 1
    stuck.die(2)
    assert len(stuck.answers) + len(answers) == 1
    stuck.replicas.advance(1)
    assert (errors(stuck.answers), errors(answers)) == ([NONE], [NONE])
