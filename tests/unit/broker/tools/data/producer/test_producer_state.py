from __future__ import annotations

from odradek.broker.tools.data.producer.accumulator import Batch
from odradek.broker.tools.data.producer.producer_state import ProducerState
from odradek.protocol.records.layout import MAX_INT32, NO_SEQUENCE
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(key: TopicPartition = A, count: int = 3) -> Batch:
    return Batch(key, 0, [SimpleRecord(0, None, b"v")] * count)


def stamped(state: ProducerState, found: Batch) -> tuple[int, int, int]:
    state.stamp(found)
    return found.producer_id, found.producer_epoch, found.base_sequence


def test_each_partition_counts_its_records() -> None:
    state = ProducerState()
    state.use(7, 1)
    assert [stamped(state, batch(key))[2] for key in (A, A, B, A)] == [0, 3, 0, 6]


def test_a_stamp_is_given_once() -> None:
    state = ProducerState()
    state.use(7, 1)
    first = batch()
    assert stamped(state, first) == (7, 1, 0)
    state.use(8, 0)
    assert stamped(state, first) == (7, 1, 0)
    assert stamped(state, batch()) == (8, 0, 0), "a new id begins at 0"


def test_without_an_id_there_is_no_sequence() -> None:
    state = ProducerState()
    assert not state.has_id
    assert stamped(state, batch())[2] == NO_SEQUENCE


def test_sequences_wrap() -> None:
    state = ProducerState()
    state.use(7, 0)
    state._next[A] = MAX_INT32
    assert [stamped(state, batch())[2] for _ in range(2)] == [MAX_INT32, 2]


def test_sequences_that_no_broker_has_are_given_again() -> None:
    state = ProducerState()
    state.use(7, 0)
    stamped(state, batch())
    refused = batch()
    stamped(state, refused)
    refused.encoded(0, None, is_transactional=False)
    state.take_back(refused)
    assert refused.payload is None
    assert stamped(state, batch(count=1))[2] == 3


def test_what_was_stamped_with_an_earlier_id_is_not_given_back() -> None:
    state = ProducerState()
    state.use(7, 0)
    stamped(state, batch())
    refused = batch()
    stamped(state, refused)
    state.use(8, 0)
    state.take_back(refused)
    assert stamped(state, refused) == (8, 0, 0)
