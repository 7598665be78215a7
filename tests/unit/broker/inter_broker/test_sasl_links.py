from __future__ import annotations

import asyncio
from typing import cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.inter_broker.sasl_links import authenticate_link, evaluate_in_pool
from odradek.broker.network.frames.answer_receiver import AnswerReceiver
from odradek.broker.security.sasl.mechanisms import SaslParts
from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.broker.security.sasl.ports import SaslClient, SaslError
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.storage.disk.ports import InlineIoPool
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.in_process.connections.network import LaterIoPool
from tests.support.in_process.security.sasl_contexts import Credentials

PARTS = SaslParts(ManualClock(), InlineIoPool(), bytes, Credentials(), None)


class Refusing:
    is_complete = False

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        raise SaslError("another server")


@async_test
async def test_an_exchange_is_evaluated_in_the_pool() -> None:
    pool = LaterIoPool()
    client = PlainSaslClient("a", "b")

    async def evaluate(one: SaslClient) -> bytes | None:
        work = evaluate_in_pool(pool, one, b"", None)
        waiting = work.send(None)
        pool.run()
        assert waiting.done()
        return await _rest(work)

    assert await evaluate(client) == b"\0a\0b"
    assert await evaluate(client) is None
    with pytest.raises(SaslError, match="another server"):
        await evaluate(Refusing())


async def _rest(work: object) -> bytes | None:
    try:
        work.send(None)  # type: ignore[attr-defined]
    except StopIteration as done:
        return cast("bytes | None", done.value)
    raise AssertionError("it still waits")


@async_test
async def test_a_broker_without_an_entry_cannot_connect_and_says_why() -> None:
    config = BrokerConfig({"sasl.mechanism.inter.broker.protocol": "PLAIN"})
    end_point = EndPoint("localhost", 1, "AUTH", SecurityProtocol.SASL_PLAINTEXT)
    with pytest.raises(ConnectionError, match=r"set listener\.name\.auth\.plain\.sasl\.jaas\.config"):
        await authenticate_link(config, PARTS, end_point, cast("AnswerReceiver", None))


@async_test
async def test_clients_leave_threads_to_the_disk_until_their_calls_end() -> None:
    pool, slots = LaterIoPool(), asyncio.Semaphore(1)
    first, second, third = (
        asyncio.ensure_future(evaluate_in_pool(pool, PlainSaslClient("a", "b"), b"", slots)) for _ in range(3)
    )
    await asyncio.sleep(0)
    first.cancel()  # its thread is still in the call
    second.cancel()
    await asyncio.wait({first, second})
    assert len(pool.jobs) == 1
    pool.run()
    while not pool.jobs:
        await asyncio.sleep(0)
    pool.run()
    assert await third == b"\0a\0b"
    assert not pool.jobs
