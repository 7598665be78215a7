"""Waits until topics appear in, or disappear from, the metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.metadata.topic_waits import TopicWaits
from odradek.controller.model.leader_and_isr import LEADER_DURING_DELETE
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test


class Broker:
    def __init__(self) -> None:
        self.clock = ManualClock(1_000)
        self.timer = SystemTimer(self.clock)
        self.cache = MetadataCache(0)
        self.waits = TopicWaits(self.cache, self.timer)

    def tell(self, topic: str, *leaders: int, alive: tuple[int, ...] = (0,)) -> None:
        """An UpdateMetadata with the leaders of the partitions 0, 1, ..."""
        states = [
            UpdateMetadataPartitionState(partition_index=index, leader=leader) for index, leader in enumerate(leaders)
        ]
        brokers = [
            UpdateMetadataBroker(id=broker, endpoints=[UpdateMetadataEndpoint(listener="PLAINTEXT")])
            for broker in alive
        ]
        topics = [UpdateMetadataTopicState(topic_name=topic, partition_states=states)]
        self.cache.update(UpdateMetadataRequest(topic_states=topics, live_brokers=brokers))
        self.waits.metadata_changed([topic])

    async def start(self, wait: Coroutine[object, object, set[str]]) -> asyncio.Task[set[str]]:
        task = asyncio.create_task(wait)
        await asyncio.sleep(0)
        return task

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()


@async_test
async def test_topic_is_ready_when_every_partition_has_a_live_leader() -> None:
    broker = Broker()
    task = await broker.start(broker.waits.wait_for_leaders({"t": (0, 1)}, 1_000))
    broker.tell("t", 0)
    await asyncio.sleep(0)
    assert not task.done(), "one partition is missing"
    broker.tell("t", 0, 9)
    await asyncio.sleep(0)
    assert not task.done(), "its leader is dead"
    broker.tell("t", 0, 0)
    assert await task == set()
    assert broker.waits.purgatory.num_delayed == 0


@async_test
async def test_a_ready_topic_needs_no_wait() -> None:
    broker = Broker()
    broker.tell("t", 0)
    assert await broker.waits.wait_for_leaders({"t": (0,)}, 1_000) == set()
    assert await broker.waits.wait_for_deletion({"never"}, 1_000) == set()


@async_test
async def test_late_topics_are_named_when_time_is_up() -> None:
    broker = Broker()
    task = await broker.start(broker.waits.wait_for_leaders({"t": (0,), "u": (0,)}, 100))
    broker.tell("u", 0)
    broker.advance(101)
    assert await task == {"t"}


@async_test
async def test_without_patience_the_answer_comes_at_once() -> None:
    broker = Broker()
    task = await broker.start(broker.waits.wait_for_leaders({"t": (0,)}, 0))
    broker.advance(1)
    assert await task == {"t"}


@async_test
async def test_deleted_topic_is_forgotten() -> None:
    broker = Broker()
    broker.tell("t", 0)
    task = await broker.start(broker.waits.wait_for_deletion({"t"}, 1_000))
    broker.tell("t", LEADER_DURING_DELETE)
    assert await task == set()


@async_test
async def test_the_waiting_task_was_cancelled() -> None:
    broker = Broker()
    task = await broker.start(broker.waits.wait_for_leaders({"t": (0,)}, 100))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    broker.advance(101)
    assert broker.waits.purgatory.num_delayed == 0


@async_test
async def test_election_is_over_when_the_metadata_has_it() -> None:
    broker = Broker()
    broker.tell("t", 0, 0, alive=(0, 1))
    moved, stuck = TopicPartition("t", 0), TopicPartition("t", 1)
    both = await broker.start(broker.waits.wait_for_elected({moved: 1, stuck: 1}, 100))
    one = await broker.start(broker.waits.wait_for_elected({moved: 1}, 100))
    broker.tell("t", 1, 0, alive=(0, 1))
    assert await one == set()
    broker.advance(101)
    assert await both == {stuck}
    assert await broker.waits.wait_for_elected({}, 0) == set()


@async_test
async def test_a_topic_that_lost_its_leader_is_missing_again() -> None:
    broker = Broker()
    task = await broker.start(broker.waits.wait_for_leaders({"t": (0,), "u": (0,)}, 100))
    broker.tell("t", 0)
    broker.tell("t", 9)
    broker.tell("u", 0)
    await asyncio.sleep(0)
    assert not task.done()
    broker.tell("t", 0)
    assert await task == set()


@async_test
async def test_a_topic_whose_leader_is_alive_again_is_found_at_the_next_change_of_another() -> None:
    broker = Broker()
    task = await broker.start(broker.waits.wait_for_leaders({"t": (0,), "u": (0,)}, 100))
    broker.tell("t", 1)
    broker.tell("u", 0, alive=(0, 1))
    assert await task == set()


@async_test
async def test_a_deleted_topic_that_exists_again_is_awaited_and_named() -> None:
    broker = Broker()
    broker.tell("t", 0)
    broker.tell("u", 0)
    task = await broker.start(broker.waits.wait_for_deletion(["t", "u"], 100))
    broker.tell("t", LEADER_DURING_DELETE)
    broker.tell("t", 0)
    broker.advance(101)
    assert await task == {"t", "u"}


@async_test
async def test_each_change_looks_only_at_the_topic_that_changed() -> None:
    """With n topics n looks when it begins, one at each change, and n at the end: not n at each change."""
    broker = Broker()
    broker.tell("other", 0)
    looks = 0

    class Counting(dict[str, tuple[int, ...]]):
        def __getitem__(self, topic: str) -> tuple[int, ...]:
            nonlocal looks
            looks += 1
            return super().__getitem__(topic)

    names = [f"t{number}" for number in range(50)]
    task = await broker.start(broker.waits.wait_for_leaders(Counting.fromkeys(names, (0,)), 1_000))
    for name in names:
        broker.tell(name, 0)
    assert await task == set()
    assert looks == 3 * len(names)
