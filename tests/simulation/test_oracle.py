"""What is committed stays: other batches at the same place, holes and readers who see too much are violations."""

from __future__ import annotations

import pytest

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.topic_partition import TopicPartition
from tests.support.requests import simple_records
from tests.support.simulation.oracle import Batch, Committed, Oracle, Violation
from tests.support.simulation.tree_server import TreeServer

TP = TopicPartition("t", 0)


def batch(base_offset: int, *values: bytes, epoch: int = 0) -> Batch:
    data = build_batch(simple_records(*values), base_offset=base_offset, partition_leader_epoch=epoch)
    return Batch.of(RecordBatch(memoryview(data)))


@pytest.fixture
def committed() -> Committed:
    found = Committed(TP)
    found.check([batch(0, b"a", b"b"), batch(2, b"c")], "broker1")
    return found


def test_another_replica_agrees_and_goes_further(committed: Committed) -> None:
    committed.check([batch(2, b"c"), batch(3, b"d")], "broker2")
    assert committed.end == 4
    assert [committed.at(offset) for offset in range(5)] == [
        batch(0, b"a", b"b"),
        batch(0, b"a", b"b"),
        batch(2, b"c"),
        batch(3, b"d"),
        None,
    ]


@pytest.mark.parametrize(
    "other", [batch(2, b"x"), batch(2, b"c", epoch=1), batch(1, b"b"), batch(2, b"c", b"d"), batch(4, b"e")]
)
def test_anything_else_at_its_place_is_a_violation(committed: Committed, other: Batch) -> None:
    with pytest.raises(Violation):
        committed.check([other], "broker2")


@pytest.mark.parametrize(("offset", "value"), [(1, b"a"), (3, b"d")])
def test_an_acknowledged_record_is_where_it_was_said_to_be(committed: Committed, offset: int, value: bytes) -> None:
    oracle = Oracle(TreeServer.__new__(TreeServer), lambda text: None)
    oracle.committed[TP] = committed
    oracle.acknowledge(TP, 0, [b"a", b"b"])
    with pytest.raises(Violation):
        oracle.acknowledge(TP, offset, [value])
