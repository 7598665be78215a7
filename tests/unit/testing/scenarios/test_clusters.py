"""What scenarios do to a cluster, on a cluster that only notes it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import pytest

from odradek.testing.scenarios import (
    controller_loss,
    coordinator_loss,
    leader_moves,
    network_partition,
    replay,
    rolling_restart,
)
from odradek.testing.scenarios.clusters import Meanwhile
from tests.support.waiting import eventually


class NotingCluster:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.brokers: Mapping[int, object] = {2: None, 0: None, 1: None}
        self.controller = 1
        self.led_by = 0
        self.in_sync = {0, 1, 2}

    def leader(self, topic: str, partition: int = 0) -> int:
        return 2 if topic == "__consumer_offsets" else self.led_by

    def in_sync_replicas(self, topic: str, partition: int = 0) -> set[int]:
        return self.in_sync

    def restart(self, broker_id: int) -> None:
        self.notes.append(f"restart {broker_id}")

    def start_broker(self, broker_id: int) -> None:
        self.notes.append(f"start {broker_id}")

    def kill(self, broker_id: int, *, notice: bool = True) -> None:
        self.notes.append(f"kill {broker_id}")

    def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None:
        self.notes.append(f"{topic}-{partition} to {to}")
        self.led_by = to

    def partition(self, *groups: Iterable[int], without_zookeeper: Iterable[int] = ()) -> None:
        self.notes.append(f"cut {groups} {without_zookeeper}")

    def heal(self) -> None:
        self.notes.append("heal")


def test_each_scenario() -> None:
    cluster = NotingCluster()
    with rolling_restart(cluster):
        pass
    assert cluster.notes == ["restart 0", "restart 1", "restart 2"]
    cluster.notes.clear()
    with leader_moves(cluster, "t", 3, times=4) as moves:
        pass
    assert cluster.notes == ["t-3 to 1", "t-3 to 2", "t-3 to 0", "t-3 to 1"]
    assert (moves.done, moves.is_going_on) == (4, False)
    cluster.notes.clear()
    for scenario in (controller_loss(cluster), coordinator_loss(cluster), network_partition(cluster, [0], [1, 2])):
        with scenario:
            cluster.notes.append("test")
    assert cluster.notes == [
        "kill 1",
        "test",
        "start 1",
        "kill 2",
        "test",
        "start 2",
        "cut ([0], [1, 2]) []",
        "test",
        "heal",
    ]


def test_a_replay_does_the_same_in_the_same_parts() -> None:
    for make in (
        rolling_restart,
        lambda cluster: leader_moves(cluster, "t", 3, times=4),
        controller_loss,
        coordinator_loss,
        lambda cluster: network_partition(cluster, [0], [1, 2], without_zookeeper=[0]),
    ):
        first, again = NotingCluster(), NotingCluster()
        with make(first) as scenario:
            wait_for_steps(scenario)
            first.notes.append("test")
        again.controller, again.led_by = 0, 2  # the record decides, not what the cluster is like now
        with replay(again, scenario.record().to_json()) as replayed:
            wait_for_steps(replayed)
            again.notes.append("test")
        assert again.notes == first.notes
        assert len(first.notes) > 1
        assert replayed.record() == scenario.record()


def wait_for_steps(scenario: Meanwhile) -> None:
    eventually(lambda: not scenario.is_going_on)


def test_a_step_that_fails_fails_the_block_and_what_was_begun_is_ended() -> None:
    ended: list[str] = []

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Meanwhile([fail], end=lambda: ended.append("ended")):
        pass
    assert ended == ["ended"]


def test_a_leader_that_cannot_move_is_an_error() -> None:
    cluster = NotingCluster()
    cluster.in_sync = {0}
    with pytest.raises(ValueError, match="t-0 has no other replica in sync"), leader_moves(cluster, "t"):
        pass


def test_a_block_that_fails_does_no_further_step() -> None:
    may_go_on = threading.Event()
    steps: list[int] = []

    def step() -> None:
        steps.append(len(steps))
        may_go_on.wait(10)

    def fail() -> None:
        threading.Timer(0.05, may_go_on.set).start()
        raise KeyError

    scenario = Meanwhile([step, step])
    with pytest.raises(KeyError), scenario:
        fail()
    assert steps == [0]
    assert scenario.done == 1


def test_a_scenario_that_cannot_begin_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = NotingCluster()

    def kill(broker_id: int, *, notice: bool = True) -> None:
        cluster.notes.append(f"kill {broker_id}")
        raise TimeoutError("the others do not notice")

    def partition(*groups: Iterable[int], without_zookeeper: Iterable[int] = ()) -> None:
        raise TimeoutError("half a cut")

    def heal() -> None:
        cluster.notes.append("heal")
        raise ValueError("this one is not shown")

    monkeypatch.setattr(cluster, "kill", kill)
    monkeypatch.setattr(cluster, "partition", partition)
    monkeypatch.setattr(cluster, "heal", heal)
    with pytest.raises(TimeoutError, match="do not notice"), controller_loss(cluster):
        pass
    with pytest.raises(TimeoutError, match="half a cut"), network_partition(cluster, [0]):
        pass
    assert cluster.notes == ["kill 1", "start 1", "heal"]
