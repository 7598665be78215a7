"""The contract of the ports, on the fakes that stand in for the broker in the other tests."""

from __future__ import annotations

import pytest

from odradek.coordinator.ports import OFFSETS_SEQUENCE, ConsumerOffsetTree, CoordinatorLog, TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.coordinator_log import InMemoryConsumerOffsetTree, InMemoryCoordinatorLog

RECORDS = [SimpleRecord(1, b"a", b"1"), SimpleRecord(2, b"b", None)]
T0 = TopicPartition("t", 0)


@pytest.fixture
def log() -> CoordinatorLog:
    return InMemoryCoordinatorLog()


@pytest.fixture
def tree() -> ConsumerOffsetTree:
    return InMemoryConsumerOffsetTree()


def append(log: CoordinatorLog, partition: int, producer: TransactionalProducer | None = None) -> tuple[ErrorCode, int]:
    outcomes: list[tuple[ErrorCode, int]] = []
    log.append(
        partition,
        RECORDS,
        lambda error, offset: outcomes.append((error, offset)),
        producer=producer,
        base_sequence=OFFSETS_SEQUENCE,
    )
    (outcome,) = outcomes
    return outcome


def test_an_append_tells_the_base_offset_of_its_batch(log: CoordinatorLog) -> None:
    assert append(log, 3) == (ErrorCode.NONE, 0)
    assert append(log, 3) == (ErrorCode.NONE, 2)
    assert append(log, 4) == (ErrorCode.NONE, 0)


def test_what_was_appended_is_read_back_batch_by_batch(log: CoordinatorLog) -> None:
    assert list(log.read_all(3)) == []
    append(log, 3)
    append(log, 3, TransactionalProducer(7, 1))
    plain, transactional = log.read_all(3)
    assert [(one.offset, one.timestamp, one.key, one.value) for one in plain.records()] == [
        (0, 1, b"a", b"1"),
        (1, 2, b"b", None),
    ]
    assert not plain.is_transactional
    assert transactional.is_transactional
    assert (transactional.producer_id, transactional.producer_epoch) == (7, 1)
    assert [one.offset for one in transactional.records()] == [2, 3]


def test_a_partition_may_have_no_log() -> None:
    log = InMemoryCoordinatorLog()
    assert log.has_log(3)
    assert log.max_batch_bytes(3) == log.max_bytes
    log.missing.add(3)
    assert not log.has_log(3)
    assert log.max_batch_bytes(3) is None


def test_an_append_that_is_held_back_is_answered_later_and_one_that_does_not_wait_at_once() -> None:
    log = InMemoryCoordinatorLog()
    log.hold = True
    outcomes: list[tuple[ErrorCode, int]] = []
    log.append(3, RECORDS, lambda error, offset: outcomes.append((error, offset)))
    log.append(3, RECORDS, lambda error, offset: outcomes.append((error, offset)), wait_for_replicas=False)
    assert outcomes == [(ErrorCode.NONE, 2)]
    assert log.release(ErrorCode.REQUEST_TIMED_OUT) == 1
    assert outcomes[1:] == [(ErrorCode.REQUEST_TIMED_OUT, -1)]
    assert len(list(log.read_all(3))) == 2


def test_an_offset_in_the_tree(tree: ConsumerOffsetTree) -> None:
    found: list[tuple[ErrorCode, int | None]] = []
    errors: list[ErrorCode] = []
    tree.get("g", T0, lambda error, offset: found.append((error, offset)))
    tree.set_or_create("g", T0, 5, errors.append)
    tree.set_or_create("g", T0, 6, errors.append)
    tree.get("g", T0, lambda error, offset: found.append((error, offset)))
    tree.get("h", T0, lambda error, offset: found.append((error, offset)))
    assert found == [(ErrorCode.NONE, None), (ErrorCode.NONE, 6), (ErrorCode.NONE, None)]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE]
