from __future__ import annotations

import pytest

from odradek.coordinator.load_times import LoadTimes
from odradek.coordinator.runtime import LoadRefusedError, PartitionOwnership
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import IMMEDIATE_STEPS, SlicedWork, Steps
from odradek.timer.system_timer import SystemTimer


class World:
    """Partitions whose loading takes as many steps as `lengths` says."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.work = SlicedWork(self.timer, self.clock)
        self.lengths: dict[int, int] = {}
        self.steps: list[int] = []
        self.unloaded: list[int] = []
        self.failure: Exception | None = None
        self.step_ms = 0
        self.loaded: list[int] = []
        self.ownership = PartitionOwnership(
            "topic", self.work, load=self.load, on_unload=self.unloaded.append, on_loaded=self.loaded.append
        )

    def load(self, partition: int) -> Steps:
        for _ in range(self.lengths.get(partition, 0)):
            self.steps.append(partition)
            self.clock.advance(self.step_ms)
            if self.failure is not None:
                raise self.failure
            yield None


def test_short_work_is_done_on_the_spot() -> None:
    world = World()
    world.lengths[3] = 5
    world.ownership.elect(3, 1)
    assert world.ownership.is_owned(3)
    assert not world.ownership.is_anything_loading
    assert world.timer.size == 0


def test_long_work_is_put_off_and_then_finished() -> None:
    world = World()
    world.lengths[3] = IMMEDIATE_STEPS * 3
    world.ownership.elect(3, 1)
    assert world.ownership.is_loading(3)
    assert not world.ownership.is_owned(3)
    world.timer.advance()
    assert world.ownership.is_owned(3)
    assert not world.ownership.is_loading(3)


def test_what_must_not_be_loaded_stays_loading_until_it_is_resigned() -> None:
    world = World()
    world.lengths[3] = world.lengths[4] = 1
    world.failure = LoadRefusedError("it is another one")
    world.ownership.elect(3, 1)
    assert world.ownership.is_loading(3)
    assert not world.ownership.is_owned(3)
    assert world.loaded == []
    world.failure = None
    world.ownership.elect(4, 1)
    assert world.ownership.is_owned(4), "others do not wait for it"
    world.ownership.resign(3, 2)
    assert not world.ownership.is_loading(3)
    world.ownership.elect(3, 3)
    assert world.ownership.is_owned(3)


def test_the_time_of_a_load_begins_with_the_election() -> None:
    world = World()
    world.ownership.load_times = times = LoadTimes(world.clock)
    world.lengths = {1: 3, 2: 3, 3: 3}
    world.step_ms = 1
    world.ownership.elect(1, 1)
    assert (times.maximum_ms, times.average_ms) == (3, 3)
    world.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    world.ownership.elect(2, 1)
    assert (times.maximum_ms, times.average_ms) == (3, 2), "a load that fails ends, too"


def test_a_partition_is_begun_when_the_one_before_it_is_loaded() -> None:
    world = World()
    world.lengths = {1: IMMEDIATE_STEPS + 10, 2: IMMEDIATE_STEPS + 10}
    world.ownership.elect(1, 1)
    world.ownership.elect(2, 1)
    assert set(world.steps) == {1}
    assert world.ownership.is_loading(2), "clients are told to wait from the election on"
    world.timer.advance()
    assert world.steps == [1] * world.lengths[1] + [2] * world.lengths[2]
    assert world.ownership.is_owned(1)
    assert world.ownership.is_owned(2)


def test_a_partition_that_is_resigned_before_its_turn_is_not_begun() -> None:
    world = World()
    world.lengths = {1: IMMEDIATE_STEPS + 10, 2: IMMEDIATE_STEPS + 10}
    world.ownership.elect(1, 1)
    world.ownership.elect(2, 1)
    world.ownership.resign(2, 2)
    world.timer.advance()
    assert set(world.steps) == {1}
    assert not world.ownership.is_owned(2)


def test_resigning_abandons_the_load() -> None:
    world = World()
    world.lengths[3] = IMMEDIATE_STEPS * 3
    world.ownership.elect(3, 1)
    world.ownership.resign(3, 2)
    done = len(world.steps)
    world.timer.advance()
    assert len(world.steps) == done
    assert world.unloaded == [3]
    assert not world.ownership.is_owned(3)
    assert world.timer.size == 0


def test_reelected_while_the_abandoned_load_is_still_queued_loads_once_more_from_the_start() -> None:
    world = World()
    world.lengths[3] = IMMEDIATE_STEPS * 3
    world.ownership.elect(3, 1)
    world.ownership.resign(3, 2)
    world.steps.clear()
    world.lengths[3] = IMMEDIATE_STEPS * 5
    world.ownership.elect(3, 3)
    world.timer.advance()
    assert len(world.steps) == IMMEDIATE_STEPS * 5
    assert world.ownership.is_owned(3)


def test_stale_epochs_are_ignored() -> None:
    world = World()
    world.ownership.elect(3, 5)
    world.ownership.resign(3, 4)
    assert world.ownership.is_owned(3)
    world.ownership.resign(3, 6)
    assert not world.ownership.is_owned(3)
    world.ownership.elect(3, 5)
    assert not world.ownership.is_owned(3)


def test_an_epoch_may_be_seen_twice() -> None:
    world = World()
    world.lengths[3] = 1
    world.ownership.elect(3, 5)
    world.ownership.elect(3, 5)
    world.ownership.elect(3, 6)
    assert world.steps == [3]
    world.ownership.resign(3, 6)
    assert world.unloaded == [3]


def test_resigning_without_an_epoch_is_unconditional() -> None:
    world = World()
    world.ownership.elect(3, 5)
    world.ownership.resign(3, None)
    assert not world.ownership.is_owned(3)
    world.ownership.elect(3, 5)
    assert world.ownership.is_owned(3)


def test_a_deleted_partition_keeps_its_epoch_unless_it_is_elected_anew() -> None:
    world = World()
    world.ownership.elect(3, 5)
    world.ownership.resign(3, None)
    world.ownership.elect(3, 0)
    assert not world.ownership.is_owned(3)
    world.ownership.elect_anew(3, 0)
    assert world.ownership.is_owned(3)
    assert world.ownership.epoch(3) == 0


@pytest.mark.parametrize("failure", [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "gone"), OSError("disk")])
def test_a_partition_that_cannot_be_read_is_owned_empty(failure: Exception) -> None:
    world = World()
    world.lengths[3] = 10
    world.failure = failure
    world.ownership.elect(3, 1)
    assert world.ownership.is_owned(3)
    assert world.steps == [3]


def test_a_bug_while_loading_is_not_swallowed() -> None:
    world = World()
    world.lengths[3] = 10
    world.failure = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        world.ownership.elect(3, 1)
    assert world.ownership.is_owned(3)


def test_a_bug_while_loading_does_not_keep_other_partitions_from_being_loaded() -> None:
    world = World()
    world.lengths = {1: IMMEDIATE_STEPS * 2, 2: IMMEDIATE_STEPS * 2}
    world.ownership.elect(1, 1)
    world.ownership.elect(2, 1)
    world.failure = ZeroDivisionError()
    with pytest.raises(ExceptionGroup):
        world.timer.advance()
    world.failure = None
    world.timer.advance()
    assert world.ownership.is_owned(1)
    assert world.ownership.is_owned(2)


def test_resign_all() -> None:
    world = World()
    world.lengths[2] = IMMEDIATE_STEPS * 2
    world.ownership.elect(1, 1)
    world.ownership.elect(2, 1)
    world.ownership.resign_all()
    assert world.unloaded == [1, 2]
    assert not world.ownership.is_anything_loading


def test_on_loaded_is_called_when_the_partition_is_owned() -> None:
    world = World()
    world.lengths[3] = IMMEDIATE_STEPS * 3
    world.ownership.elect(3, 7)
    assert (world.loaded, world.ownership.epoch(3)) == ([], 7)
    world.timer.advance()
    assert world.loaded == [3]


def test_on_loaded_is_not_called_for_a_resigned_partition() -> None:
    world = World()
    world.lengths[3] = IMMEDIATE_STEPS * 3
    world.ownership.elect(3, 7)
    world.ownership.resign(3, 8)
    world.timer.advance()
    assert (world.loaded, world.ownership.epoch(3)) == ([], 8)
