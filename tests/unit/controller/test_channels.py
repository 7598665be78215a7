from __future__ import annotations

import asyncio

import pytest

from odradek.controller.channels import RETRY_BACKOFF_MS, ControllerChannels
from odradek.controller.model.broker_info import Broker
from odradek.controller.states.request_batch import ControlRequest, ControlResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test


class _Transport:
    """Answers each request when told to, or fails as often as told."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_closed = False

    async def exchange(self, request: ControlRequest) -> ControlResponse:
        self.received.append(request.controller_epoch)
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise ConnectionResetError
        return UpdateMetadataResponse()

    def close(self) -> None:
        self.is_closed = True


def numbered(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_epoch=number)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@async_test
async def test_requests_arrive_in_order_one_at_a_time() -> None:
    transport, answered = _Transport(), []
    channels = ControllerChannels(lambda broker: transport, SystemTimer(ManualClock()))
    channels.add_broker(Broker(1, ()))
    transport.gate.clear()
    for number in range(3):
        channels.send(1, numbered(number), lambda response, number=number: answered.append(number))
    await turns()
    assert (transport.received, answered) == ([0], [])
    assert channels.queue_sizes == {1: 3}
    transport.gate.set()
    await turns()
    assert (transport.received, answered) == ([0, 1, 2], [0, 1, 2])
    assert channels.queue_sizes == {1: 0}
    assert channels.queue_times_ms[1].count == 3
    channels.shutdown()
    assert transport.is_closed


@async_test
async def test_a_request_that_fails_is_sent_again_before_the_next() -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    transport, answered = _Transport(), []
    transport.failures = 2
    channels = ControllerChannels(lambda broker: transport, timer)
    channels.add_broker(Broker(1, ()))
    for number in range(2):
        channels.send(1, numbered(number), answered.append)
    await turns()
    for sent in ([0, 0], [0, 0, 0, 1]):
        clock.advance(RETRY_BACKOFF_MS - 1)
        timer.advance()
        await turns()
        assert transport.received != sent
        clock.advance(1)
        timer.advance()
        await turns()
        assert transport.received == sent
    assert len(answered) == 2
    channels.shutdown()


@async_test
async def test_a_bug_in_one_request_does_not_keep_the_next_ones_from_a_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport, answered = _Transport(), []
    channels = ControllerChannels(lambda broker: transport, SystemTimer(ManualClock()))
    channels.add_broker(Broker(1, ()))

    def broken(response: ControlResponse) -> None:
        raise ValueError("a bug")

    channels.send(1, numbered(0), broken)
    channels.send(1, numbered(1), answered.append)
    await turns()
    assert (transport.received, len(answered)) == ([0, 1], 1)
    assert "a bug" in caplog.text
    channels.shutdown()


@async_test
async def test_one_warning_for_each_request_to_a_dead_broker(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    transport = _Transport()
    transport.failures = 3
    channels = ControllerChannels(lambda broker: transport, timer)
    channels.add_broker(Broker(1, ()))
    channels.send(1, numbered(0), lambda response: None)
    for _ in range(4):
        await turns()
        clock.advance(RETRY_BACKOFF_MS)
        timer.advance()
    await turns()
    assert transport.received == [0, 0, 0, 0]
    assert caplog.text.count("failed to send UpdateMetadataRequest to broker 1") == 1
    channels.shutdown()


@async_test
async def test_a_broker_that_is_removed_gets_nothing_more() -> None:
    clock = ManualClock()
    timer = SystemTimer(clock)
    transport = _Transport()
    transport.failures = 100
    channels = ControllerChannels(lambda broker: transport, timer)
    channels.add_broker(Broker(1, ()))
    channels.send(1, numbered(0), lambda response: None)
    await turns()
    channels.remove_broker(1)
    channels.send(1, numbered(1), lambda response: None)
    await turns()
    clock.advance(RETRY_BACKOFF_MS)
    timer.advance()
    await turns()
    assert transport.received == [0]
    assert timer.size == 0
    channels.remove_broker(1)


@async_test
async def test_brokers_do_not_wait_for_each_other() -> None:
    transports = {1: _Transport(), 2: _Transport()}
    transports[1].gate.clear()
    channels = ControllerChannels(lambda broker: transports[broker.id], SystemTimer(ManualClock()))
    for broker_id in (1, 2):
        channels.add_broker(Broker(broker_id, ()))
        channels.add_broker(Broker(broker_id, ()))
        channels.send(broker_id, numbered(broker_id), lambda response: None)
        channels.send(broker_id, numbered(broker_id), lambda response: None)
    await turns()
    assert (transports[1].received, transports[2].received) == ([1], [2, 2])
    channels.shutdown()
