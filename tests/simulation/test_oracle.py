"""Committed batches stay: other batches at their offsets, holes, and reads of uncommitted records are violations."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from odradek.broker.partition.isr import CommittedPartitionState
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.tree.metadata_tree import Create, SetData
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.topic_partition import TopicPartition
from tests.support.simulation.committed import Batch, Committed, Violation
from tests.support.simulation.environment.network import Network
from tests.support.simulation.environment.tree_server import TreeServer
from tests.support.simulation.environment.virtual_loop import VirtualLoop
from tests.support.simulation.oracle import Oracle, Topic
from tests.support.wire.requests import simple_records

if TYPE_CHECKING:
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.storage.log.unified_log import UnifiedLog

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
    oracle._all_committed[Topic(TP, None)] = committed
    oracle.acknowledge(TP, 0, [b"a", b"b"])
    with pytest.raises(Violation):
        oracle.acknowledge(TP, offset, [value])


class Cluster:
    """A tree and what the oracle has seen of one partition's replicas."""

    def __init__(self, ends: dict[int, int], committed: int) -> None:
        loop = VirtualLoop(Random(1))
        self.tree = TreeServer(Network(loop, Random(1)))
        self.oracle = Oracle(self.tree, lambda text: None)
        for path in ("/brokers", znodes.TOPICS, znodes.topic_path("t"), "/admin", znodes.DELETE_TOPICS):
            self.create(path, topic_nodes.encode_topic(b"i" * 16, {0: ReplicaAssignment((1, 2, 3))}))
        self.create(znodes.topic_partitions_path("t"))
        self.create(znodes.partition_path(TP))
        self.create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(1))
        self.create(znodes.partition_state_path(TP), self.state((1, 2, 3)))
        self.oracle._logs = {
            (broker, TP): cast("UnifiedLog", SimpleNamespace(log_end_offset=ends[broker])) for broker in ends
        }
        self.oracle.committed[TP].check([batch(at, b"x") for at in range(committed)], "broker1")

    def create(self, path: str, data: bytes | None = None) -> None:
        self.tree.store.apply(Create(path, data), 0)
        self.tree._fire()

    def state(self, isr: tuple[int, ...], controller_epoch: int = 1, leader_epoch: int = 0) -> bytes:
        leadership = LeaderAndIsr(leader=isr[0], isr=isr, leader_epoch=leader_epoch)
        return topic_nodes.encode_partition_state(LeaderIsrAndControllerEpoch(leadership, controller_epoch))

    def write(self, isr: tuple[int, ...], controller_epoch: int = 1, leader_epoch: int = 0) -> None:
        data = self.state(isr, controller_epoch, leader_epoch)
        self.tree.store.apply(SetData(znodes.partition_state_path(TP), data), 0)
        self.tree._fire()


def test_whoever_is_in_the_isr_has_what_was_committed() -> None:
    cluster = Cluster({1: 5, 2: 5, 3: 4}, committed=5)
    cluster.write((1, 2))
    with pytest.raises(Violation, match="ISR is"):
        cluster.write((1, 2, 3))


def test_of_a_topic_to_be_deleted_nothing_is_asked() -> None:
    cluster = Cluster({1: 5, 2: 5, 3: 4}, committed=5)
    cluster.create(znodes.delete_topic_path("t"))
    cluster.write((1, 2, 3))


def test_a_replica_that_lost_its_power_is_doubtful_until_it_has_left_the_isr() -> None:
    cluster = Cluster({1: 5, 2: 5, 3: 4}, committed=5)
    cluster.oracle.lost_power(3, [])
    cluster.write((1, 2, 3))
    cluster.write((1, 2))
    with pytest.raises(Violation, match="ISR is"):
        cluster.write((1, 2, 3))


@pytest.mark.parametrize(("partition_epoch", "is_doubtful"), [(1, True), (0, False)], ids=["valid", "outdated"])
def test_a_replica_that_lost_its_power_is_doubtful_in_the_isr_that_was_proposed(
    partition_epoch: int, is_doubtful: bool
) -> None:
    cluster = Cluster({1: 5, 2: 5, 3: 4}, committed=5)
    cluster.write((1, 2))
    state = CommittedPartitionState((1, 2)).expand(3, leader=1, leader_epoch=0, partition_epoch=partition_epoch)
    partition = SimpleNamespace(in_sync=SimpleNamespace(state=state))
    leader = cast("ReplicaManager", SimpleNamespace(hosted={TP: partition}.get))
    cluster.oracle.lost_power(3, [leader])
    with nullcontext() if is_doubtful else pytest.raises(Violation, match="ISR is"):
        cluster.write((1, 2, 3))
    if is_doubtful:
        cluster.write((1, 2))
        with pytest.raises(Violation, match="ISR is"):
            cluster.write((1, 2, 3))


@pytest.mark.parametrize(("holders_min", "is_enough"), [(2, True), (3, False)])
def test_as_many_replicas_have_it_as_are_needed(holders_min: int, is_enough: bool) -> None:
    cluster = Cluster({1: 5, 2: 5, 3: 4}, committed=5)
    cluster.write((1, 2))
    with nullcontext() if is_enough else pytest.raises(Violation, match="the ends are"):
        cluster.oracle._look_at_in_sync(TP, holders_min)


@pytest.mark.parametrize("epochs", [{"controller_epoch": 0}, {"leader_epoch": 0}])
def test_epochs_in_the_tree_only_grow(epochs: dict[str, int]) -> None:
    cluster = Cluster({}, committed=0)
    cluster.write((1, 2), leader_epoch=1)
    with pytest.raises(Violation, match="back to"):
        cluster.write((1, 2), **{"leader_epoch": 1, **epochs})


def test_only_the_controller_of_the_moment_writes() -> None:
    cluster = Cluster({}, committed=0)
    cluster.tree.store.apply(SetData(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(2)), 0)
    with pytest.raises(Violation, match="written by controller 1"):
        cluster.write((1, 2))
