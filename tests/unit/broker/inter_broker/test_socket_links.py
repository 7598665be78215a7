from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.inter_broker import socket_links
from odradek.broker.inter_broker.broker_connection import BrokerConnection
from odradek.broker.inter_broker.socket_links import SocketLinks
from odradek.broker.network.frames.answer_receiver import AnswerReceiver
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test

END_POINT = EndPoint("broker.example", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT)


class Transport:
    def __init__(self) -> None:
        self.options: list[int] = []
        self.is_open = True

    def get_extra_info(self, name: str) -> Transport:
        assert name == "socket"
        return self

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self.options.append(value)

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None: ...


async def opened(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], *, answer_bytes: int = 0) -> Transport:
    """Where a link was connected to, once its request is out; the size of an answer, if one is given, has come in."""
    transport = Transport()
    receivers: list[AnswerReceiver] = []

    async def connect(
        end_point: EndPoint, make_receiver: Callable[[], AnswerReceiver], context: ssl.SSLContext | None
    ) -> AnswerReceiver:
        assert context is None
        receiver = make_receiver()
        receivers.append(receiver)
        receiver.connection_made(cast("asyncio.Transport", transport))
        return receiver

    monkeypatch.setattr(socket_links, "connect", connect)
    links = SocketLinks(BrokerConfig(settings), SystemTimer(ManualClock()))
    link = links(END_POINT, client_id="1")
    assert isinstance(link, BrokerConnection)
    asked = asyncio.ensure_future(
        link.exchange(AllocateProducerIdsRequest(), AllocateProducerIdsResponse, version=0, timeout_ms=10)
    )
    for _ in range(5):
        await asyncio.sleep(0)
    if answer_bytes:
        receivers[0].get_buffer(-1)[:4] = answer_bytes.to_bytes(4, "big")
        receivers[0].buffer_updated(4)
        transport.is_open = receivers[0].is_open
    link.close()
    with pytest.raises(ConnectionAbortedError):
        await asked
    return transport


def test_the_receive_buffer_is_the_one_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    @async_test
    async def run() -> None:
        assert (await opened(monkeypatch, {})).options == [65_536]
        assert (await opened(monkeypatch, {"replica.socket.receive.buffer.bytes": "-1"})).options == []

    run()


def test_an_answer_may_be_as_large_as_a_fetch_and_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"replica.fetch.response.max.bytes": "3000", "socket.request.max.bytes": "2000"}

    @async_test
    async def run() -> None:
        assert (await opened(monkeypatch, settings, answer_bytes=5000)).is_open
        assert not (await opened(monkeypatch, settings, answer_bytes=5001)).is_open

    run()
