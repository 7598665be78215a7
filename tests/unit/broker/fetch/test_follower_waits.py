"""Waits of followers after a leadership has begun, and of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.follower_waits import SHORT_FOR_MS, SHORT_WAIT_MS
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.replication.replicas import TP, Replicas

OTHER = TopicPartition("t", 1)
FOLLOWER = 1
WAIT_MS = 500


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    """Leads a partition for longer than waits are short, and follows another one."""
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, FOLLOWER])
    replicas.follow(OTHER)
    replicas.advance(SHORT_FOR_MS)
    return replicas


def test_a_new_leadership_answers_followers_that_wait(replicas: Replicas) -> None:
    follower = replicas.fetch(0, max_wait_ms=WAIT_MS, replica_id=FOLLOWER)
    consumer = replicas.fetch(0, max_wait_ms=WAIT_MS)
    assert follower == []
    replicas.lead(OTHER, epoch=1, partition_epoch=1, replicas=[0, FOLLOWER])
    assert (len(follower), consumer) == (1, [])
    replicas.advance(WAIT_MS)
    assert len(consumer) == 1


def test_the_next_fetches_of_followers_wait_for_a_short_time(replicas: Replicas) -> None:
    replicas.lead(OTHER, epoch=1, partition_epoch=1, replicas=[0, FOLLOWER])
    consumer = replicas.fetch(0, max_wait_ms=WAIT_MS)
    for _ in range(2):
        follower = replicas.fetch(0, max_wait_ms=WAIT_MS, replica_id=FOLLOWER)
        replicas.advance(SHORT_WAIT_MS - 1)
        assert follower == []
        replicas.advance(1)
        assert len(follower) == 1
    assert consumer == []
    replicas.advance(SHORT_FOR_MS)
    follower = replicas.fetch(0, max_wait_ms=WAIT_MS, replica_id=FOLLOWER)
    replicas.advance(WAIT_MS - 1)
    assert follower == []


def test_a_shorter_wait_stays(replicas: Replicas) -> None:
    replicas.lead(OTHER, epoch=1, partition_epoch=1, replicas=[0, FOLLOWER])
    follower = replicas.fetch(0, max_wait_ms=SHORT_WAIT_MS - 5, replica_id=FOLLOWER)
    replicas.advance(SHORT_WAIT_MS - 5)
    assert len(follower) == 1


def test_another_leadership_soon_after_lets_short_waits_be_and_prolongs_their_time(replicas: Replicas) -> None:
    replicas.lead(OTHER, epoch=1, partition_epoch=1, replicas=[0, FOLLOWER])
    replicas.advance(SHORT_FOR_MS - 1)
    follower = replicas.fetch(0, max_wait_ms=WAIT_MS, replica_id=FOLLOWER)
    replicas.lead(TopicPartition("t", 2), replicas=[0, FOLLOWER])
    assert follower == []
    replicas.advance(SHORT_WAIT_MS)
    assert len(follower) == 1
    follower = replicas.fetch(0, max_wait_ms=WAIT_MS, replica_id=FOLLOWER)
    replicas.advance(SHORT_WAIT_MS)
    assert len(follower) == 1


def test_a_new_epoch_of_the_same_leader_changes_no_wait(replicas: Replicas) -> None:
    follower = replicas.fetch(0, TP, max_wait_ms=WAIT_MS, replica_id=FOLLOWER)
    replicas.lead(TP, epoch=1, partition_epoch=1, replicas=[0, FOLLOWER])
    assert follower == []
