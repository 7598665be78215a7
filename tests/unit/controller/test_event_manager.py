from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping

import pytest

from odradek.controller import events as ev
from odradek.controller.event_manager import ControllerEventManager, FutureReply
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test


class _Handler:
    """Keeps the events, and holds each until the gate opens."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def handle(self, event: ev.ControllerEvent) -> None:
        name = getattr(event, "topic", type(event).__name__)
        self.log.append(f"begin {name}")
        await self.gate.wait()
        self.log.append(f"end {name}")


def topic(name: str) -> ev.PartitionModifications:
    return ev.PartitionModifications(name)


@async_test
async def test_one_event_at_a_time_in_order() -> None:
    handler = _Handler()
    events = ControllerEventManager(handler.handle, ManualClock().monotonic_ms)
    events.put(topic("before"))
    events.start()
    handler.gate.clear()
    for name in "ab":
        events.put(topic(name))
    await asyncio.sleep(0)
    assert handler.log == ["begin before"]
    handler.gate.set()
    await events.settle()
    assert handler.log == [f"{step} {name}" for name in ("before", "a", "b") for step in ("begin", "end")]
    await events.close()


class _Partitions(set[TopicPartition]):
    """A set to which there may be a weak reference."""


@async_test
async def test_an_event_is_forgotten_when_it_is_handled() -> None:
    """It may name 300,000 partitions, and the next event may come hours later."""
    handler = _Handler()
    events = ControllerEventManager(handler.handle, ManualClock().monotonic_ms)
    events.start()
    partitions = _Partitions()
    forgotten = weakref.ref(partitions)
    reply: asyncio.Future[Mapping[TopicPartition, ReplicaAssignment]] = asyncio.get_running_loop().create_future()
    events.put(ev.ListPartitionReassignments(partitions, FutureReply(reply)))
    del partitions
    assert forgotten() is not None
    await events.settle()
    assert handler.log == ["begin ListPartitionReassignments", "end ListPartitionReassignments"]
    assert forgotten() is None
    await events.close()


@async_test
async def test_clearing_answers_what_waits_and_lets_the_event_at_hand_finish() -> None:
    handler = _Handler()
    events = ControllerEventManager(handler.handle, ManualClock().monotonic_ms)
    events.start()
    handler.gate.clear()
    events.put(topic("at hand"))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(events.request(lambda reply: ev.AllocateProducerIds(1, 2, reply)))
    await asyncio.sleep(0)
    events.clear()
    with pytest.raises(KafkaError) as refusal:
        await waiting
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
    handler.gate.set()
    await events.settle()
    assert handler.log == ["begin at hand", "end at hand"]
    await events.close()


@async_test
async def test_nothing_is_accepted_before_the_start_and_after_the_end() -> None:
    handler = _Handler()
    events = ControllerEventManager(handler.handle, ManualClock().monotonic_ms)
    with pytest.raises(KafkaError):
        await events.request(lambda reply: ev.AllocateProducerIds(1, 2, reply))
    events.start()
    assert events.is_running
    await events.close()
    assert not events.is_running
    with pytest.raises(KafkaError):
        await events.request(lambda reply: ev.AllocateProducerIds(1, 2, reply))
    events.put(topic("late"))
    await events.settle()
    assert handler.log == []


@async_test
async def test_an_answer_nobody_waits_for_is_dropped() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    reply = FutureReply(future)
    future.cancel()
    reply.set_result(1)
    reply.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
    assert future.cancelled()
