from __future__ import annotations

import asyncio

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.testing import AsyncBroker
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
