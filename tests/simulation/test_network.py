"""Frames are late, held back, or lost; the sender gets an error; a frame under way arrives all the same."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from tests.support.simulation.environment.network import Network, Pipe, ServerSide
from tests.support.simulation.environment.virtual_loop import Machine, VirtualLoop

THERE, BACK = ("client", "broker"), ("broker", "client")
FRAME = b"\0\0"


class Two:
    """A client and a broker that answers every frame with itself."""

    def __init__(self, seed: int = 1) -> None:
        self.loop = VirtualLoop(Random(seed))
        self.network = Network(self.loop, Random(seed))
        self.client, self.broker = self.loop.add_machine("client"), self.loop.add_machine("broker")
        self.arrived: list[bytes] = []
        self.network.listen(("broker", 9092), self.broker, self._dispatch)

    def _dispatch(self, connection: ServerSide, frame: memoryview, received_ms: int) -> None:
        self.arrived.append(bytes(frame))
        connection._pipe.answer(bytes(frame))

    async def connect(self) -> Pipe:
        return await self.network.connect(self.client, EndPoint("broker", 9092, "P", SecurityProtocol.PLAINTEXT))

    async def ask(self, pipe: Pipe, timeout_s: float = 10) -> bytes:
        return bytes(await asyncio.wait_for(pipe.exchange(FRAME), timeout_s))

    async def connect_and_ask(self) -> bytes:
        return await self.ask(await self.connect())


def test_an_answer_comes_after_a_while() -> None:
    two = Two()
    assert two.loop.run(two.connect_and_ask()) == FRAME
    assert two.loop.now_us > 0
    assert two.network.frames == 2


def test_nobody_listens() -> None:
    two = Two()
    two.network.close(two.broker)
    with pytest.raises(ConnectionRefusedError):
        two.loop.run(two.connect())


@pytest.mark.parametrize(("direction", "has_arrived"), [(THERE, False), (BACK, True)])
def test_what_is_held_back_comes_when_the_cut_is_healed(direction: tuple[str, str], has_arrived: bool) -> None:
    two = Two()

    async def work() -> None:
        pipe = await two.connect()
        two.network.cut(direction)
        asking = asyncio.ensure_future(two.ask(pipe))
        await asyncio.sleep(5)
        assert (bool(two.arrived), asking.done()) == (has_arrived, False)
        two.network.heal(direction)
        assert await asking == FRAME

    two.loop.run(work())


def test_a_request_that_was_given_up_arrives_all_the_same() -> None:
    two = Two()

    async def work() -> None:
        pipe = await two.connect()
        two.network.cut(THERE)
        with pytest.raises(TimeoutError):
            await two.ask(pipe, 1)
        pipe.abort(OSError("given up"))
        two.network.heal()
        await asyncio.sleep(1)
        assert two.arrived == [FRAME]

    two.loop.run(work())


def test_a_lost_frame_resets_the_connection_and_may_have_arrived() -> None:
    outcomes = set()
    for seed in range(20):
        two = Two(seed)

        async def work(two: Two = two) -> None:
            pipe = await two.connect()
            two.network.loss = 1.0
            with pytest.raises(ConnectionResetError):
                await two.ask(pipe)
            await asyncio.sleep(1)
            assert not pipe.is_open

        two.loop.run(work())
        outcomes.add(len(two.arrived))
    assert outcomes == {0, 1}


@pytest.mark.parametrize("dies", ["client", "broker"])
def test_a_machine_that_dies_resets_its_connections(dies: str) -> None:
    two = Two()
    machine: Machine = getattr(two, dies)

    async def work() -> None:
        pipe = await two.connect()
        two.network.cut(THERE)
        asking = asyncio.ensure_future(two.ask(pipe))
        await asyncio.sleep(1)
        two.network.close(machine)
        with pytest.raises(ConnectionResetError):
            await asking

    two.loop.run(work())


@pytest.mark.parametrize("late", [frozenset[int](), frozenset({0})])
def test_what_was_under_way_on_a_connection_that_was_given_up_may_come_in_late(late: frozenset[int]) -> None:
    two = Two()
    two.network.late = late

    async def work() -> None:
        pipe = await two.connect()
        asking = asyncio.ensure_future(two.ask(pipe))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        pipe.reset("given up")
        with pytest.raises(OSError, match="given up"):
            await asking
        began_us = two.loop.now_us
        while not two.arrived:
            await asyncio.sleep(0.001)
        assert (two.loop.now_us - began_us > 10_000) == bool(late)

    two.loop.run(work())
