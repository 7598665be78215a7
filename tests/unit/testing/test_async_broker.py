from __future__ import annotations

import asyncio
import threading

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.testing import AsyncBroker, Broker
from odradek.testing.node.ports import BrokerStopped
from tests.support.testing import asking  # noqa: F401 - registers the questions


def test_it_serves_while_the_loop_of_the_test_runs_and_can_be_reset() -> None:
    async def test() -> None:
        async with AsyncBroker() as broker:
            before = broker.bootstrap_servers
            await broker.ask("make_node_of_test")
            await broker.reset()
            assert await broker.ask("has_node_of_test") is False
            assert broker.bootstrap_servers == before
        with pytest.raises(BrokerStopped):
            await broker.ask("process_id")

    asyncio.run(test())


def test_a_stop_ends_a_question_that_waits() -> None:
    async def test() -> None:
        broker = await AsyncBroker().start()
        waiting = asyncio.ensure_future(broker.ask("never_answered"))
        await broker.ask("process_id")
        await broker.stop()
        with pytest.raises(BrokerStopped):
            await waiting

    asyncio.run(test())


def test_it_starts_and_stops_the_broker_that_it_is_made_of() -> None:
    broker = Broker(num_partitions=3)

    async def test() -> None:
        before = set(threading.enumerate())
        async with AsyncBroker.of(broker) as other:
            assert await other.ask("config_of_broker", name="num.partitions") == "3"
            assert other.bootstrap_servers == broker.bootstrap_servers
            broker.stop()
            with pytest.raises(BrokerStopped):
                await other.ask("process_id")
            await other.start()
            assert broker.ask("config_of_broker", name="num.partitions") == "3"
        with pytest.raises(BrokerStopped):
            broker.ask("process_id")
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
            assert not thread.is_alive()

    asyncio.run(test())


def test_a_refused_start_raises_the_line_for_operators() -> None:
    with pytest.raises(StartupError, match=r"num\.partitions"):
        asyncio.run(AsyncBroker(num_partitions=0).start())


def test_a_cancelled_question_is_cancelled_in_the_broker_and_the_broker_goes_on() -> None:
    async def test() -> None:
        async with AsyncBroker() as broker:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(broker.ask("never_answered"), 0.01)
            await broker.ask("process_id")

    asyncio.run(test())


@pytest.mark.parametrize("own_process", [False, True])
def test_a_start_and_a_stop_that_are_cancelled_leave_no_broker(own_process: bool) -> None:
    """A thread that fails is a warning, which fails this test."""

    async def test() -> None:
        before = set(threading.enumerate())
        broker = AsyncBroker(own_process=own_process)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(broker.start(), 0)
        with pytest.raises(BrokerStopped):
            await broker.ask("process_id")
        starting = asyncio.create_task(broker.start())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await broker.start()
        stopping = asyncio.create_task(broker.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        while set(threading.enumerate()) - before:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(test(), 30))
