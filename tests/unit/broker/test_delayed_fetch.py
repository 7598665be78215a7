"""A Fetch that waits: what ends the wait. (Its bytes are counted in test_replica_manager.py.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.replica_manager import ReplicaManager
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.fetch_data import FetchIsolation
from tests.support.logs import batch
from tests.support.replicas import TOPIC_ID, TP, Replicas, offsets_of


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    replicas = Replicas(tmp_path)
    replicas.lead()
    return replicas


@pytest.mark.parametrize(
    "error", [ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_refusal_ends_the_wait_and_hurts_nobody_else(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """The wait is ended from within somebody else's Produce, which must not fail for it."""
    answers = replicas.fetch(0, max_wait_ms=500)

    def refuse(self: ReplicaManager, fetch: object) -> None:
        raise KafkaError(error)

    monkeypatch.setattr(ReplicaManager, "partition_of", refuse)
    (appended,) = replicas.append(batch(b"a"))
    assert appended.error == ErrorCode.NONE
    assert [answer.error for answer in answers] == [error]


@pytest.mark.parametrize("epoch", [1, 5])
def test_new_leader_epoch_ends_the_wait(replicas: Replicas, epoch: int) -> None:
    answers = replicas.fetch(0, max_wait_ms=500, epoch=0)
    replicas.lead(epoch=epoch, partition_epoch=1)
    assert [answer.error for answer in answers] == [ErrorCode.FENCED_LEADER_EPOCH]


def test_reader_without_an_epoch_goes_on_waiting_for_the_same_leader(replicas: Replicas) -> None:
    answers = replicas.fetch(0, max_wait_ms=500)
    replicas.lead(epoch=1, partition_epoch=1)
    assert answers == []
    replicas.append(batch(b"a"))
    assert [offsets_of(answer) for answer in answers] == [[0]]


def test_uncommitted_records_wake_a_follower_and_no_consumer(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.lead(replicas=[0, 1, 2])
    consumer = replicas.fetch(0, max_wait_ms=500)
    follower = replicas.fetch(0, max_wait_ms=500, replica_id=1)
    replicas.append(batch(b"a"))
    assert (len(consumer), len(follower)) == (0, 1)
    for broker_id in (1, 2):
        replicas.fetch(1, replica_id=broker_id)
    assert [offsets_of(answer) for answer in consumer] == [[0]]


def test_reader_of_committed_data_waits_for_the_end_of_the_transaction(replicas: Replicas) -> None:
    waiting = replicas.fetch(0, max_wait_ms=500, isolation=FetchIsolation.TXN_COMMITTED)
    log = replicas.manager.partition(TP).log
    assert log is not None
    assert waiting == []
    replicas.append(batch(b"plain"))
    assert [offsets_of(answer) for answer in waiting] == [[0]]


def test_topic_id_of_the_log_is_compared_only_when_one_was_named(replicas: Replicas) -> None:
    for topic_id, error in ((ZERO_UUID, 0), (TOPIC_ID, 0), (b"?" * 16, ErrorCode.INCONSISTENT_TOPIC_ID)):
        (answer,) = replicas.fetch(0, topic_id=topic_id)
        assert answer.error == error


def test_nothing_is_left_behind(replicas: Replicas) -> None:
    for _ in range(3):
        replicas.fetch(0, max_wait_ms=500)
    replicas.append(batch(b"a"))
    assert replicas.manager.fetch_purgatory.num_delayed == 0
    assert replicas.manager.fetch_purgatory.watched == 0
