"""A hundred groups that join at once, a group of a thousand members, and a hundred consumers of one topic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.benchmarks.clients.connections import Connection, connections
from tests.benchmarks.clients.group_members import Group
from tests.benchmarks.comparison.costs import latency_figures
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.group_offsets import find_coordinator
from tests.benchmarks.workloads.growth.long_polling import fetch_frame
from tests.benchmarks.workloads.records.latency import produce_frame
from tests.support.wire.raw_client import RawClient

TOPIC: Final = "fan-out"
GROUPS: Final = 100
MEMBERS: Final = 1_000
CONSUMERS: Final = 100
RECORDS: Final = 100
JOIN_TIMEOUT_S: Final = 120
MAX_WAIT_MS: Final = 30_000


def coordinate(sides: Sequence[Side]) -> None:
    """Make the brokers create the topic of the groups."""
    for side in sides:
        with RawClient(side.broker.host, side.broker.port) as client:
            find_coordinator(client)


def join(groups: int, members: int, side: Side) -> Figures:
    """All members of all groups join at the same time."""
    return asyncio.run(_join([Group(side.new_topic("group"), members) for _ in range(groups)], side))


async def _join(groups: Sequence[Group], side: Side) -> Figures:
    count = sum(group.members for group in groups)
    async with connections(side.broker.host, side.broker.port, count) as made:
        places = [(group, made.pop()) for group in groups for _ in range(group.members)]
        before, started = side.usage(), time.perf_counter()
        async with asyncio.timeout(JOIN_TIMEOUT_S):
            ids = await asyncio.gather(*(group.join(connection) for group, connection in places))
        elapsed_s, used = time.perf_counter() - started, side.usage() - before
        for group in groups:
            own = [(at, member_id) for (of, at), member_id in zip(places, ids, strict=True) if of is group]
            await group.leave(own[0][0], [member_id for _, member_id in own])
        for _, connection in places:
            connection.close()
    return {
        ("all groups are stable after", "s"): elapsed_s,
        ("broker", "CPU ms/member"): used.total_s / count * 1000,
    }


def prepare_fan_out(sides: Sequence[Side]) -> None:
    for side in sides:
        create_topic(side.broker, TOPIC, 1)
        side.memo[TOPIC] = 0


def fan_out(side: Side) -> Figures:
    return asyncio.run(_fan_out(side))


async def _fan_out(side: Side) -> Figures:
    """Each record is produced when all consumers have the one before."""
    first = side.memo[TOPIC]
    offsets = range(first, first + side.amount(RECORDS, at_least=10))
    side.memo[TOPIC] = offsets.stop
    frames = {offset: fetch_frame(TOPIC, offset, MAX_WAIT_MS) for offset in offsets}
    received = [asyncio.Barrier(CONSUMERS + 1) for _ in offsets]

    async def consume(connection: Connection) -> None:
        for offset, barrier in zip(offsets, received, strict=True):
            await connection.exchange(frames[offset])
            await barrier.wait()

    async with connections(side.broker.host, side.broker.port, CONSUMERS + 1) as made:
        frame, producer = produce_frame(TOPIC, bytes(1_000)), made.pop()
        async with asyncio.TaskGroup() as consumers:
            for connection in made:
                consumers.create_task(consume(connection))
            before = side.usage()
            found = []
            for barrier in received:
                started = time.perf_counter()
                await producer.exchange(frame)
                await barrier.wait()
                found.append(time.perf_counter() - started)
            used = side.usage() - before
    deliveries = CONSUMERS * len(offsets)
    return {**latency_figures(found, "all have it, "), ("a delivery", "CPU µs"): used.total_s / deliveries * 1e6}


WORKLOADS: Final = (
    Workload(
        name="consumer_groups/fan-out",
        description=f"{CONSUMERS} consumers wait for each record of a topic of one partition",
        setup=ONE_NODE,
        prepare=prepare_fan_out,
        drive=fan_out,
    ),
    Workload(
        name="consumer_groups/many",
        description=f"{GROUPS} groups of one member join at once",
        setup=ONE_NODE,
        prepare=coordinate,
        drive=partial(join, GROUPS, 1),
    ),
    Workload(
        name="consumer_groups/large",
        description=f"A group of {MEMBERS:,} members: all join at once, group.initial.rebalance.delay.ms=0",
        setup=ONE_NODE,
        prepare=coordinate,
        drive=partial(join, 1, MEMBERS),
        warm_up=1,
    ),
)
