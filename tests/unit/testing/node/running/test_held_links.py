from __future__ import annotations

import asyncio

import pytest

from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.testing.node.running.held_links import HeldLinks
from tests.support.async_test import async_test

END_POINT = EndPoint(host="h", port=1, listener_name="PLAINTEXT", security_protocol=SecurityProtocol.PLAINTEXT)


class _Inner:
    def __init__(self, end_point: EndPoint, *, client_id: str) -> None:
        self.sent = 0
        self.is_closed = False
        self.answer: asyncio.Future[ApiVersionsResponse] = asyncio.get_running_loop().create_future()

    async def exchange(self, request: object, response_type: object, *, version: object, timeout_ms: int) -> object:
        self.sent += 1
        return await self.answer

    def close(self) -> None:
        self.is_closed = True


def _nothing() -> None:
    """Called at the end of each exchange."""


def _link(links: HeldLinks) -> tuple[object, _Inner]:
    made: list[_Inner] = []

    def make(end_point: EndPoint, /, *, client_id: str) -> _Inner:
        made.append(_Inner(end_point, client_id=client_id))
        return made[0]

    link = links.wrap(make)(END_POINT, client_id="c")  # type: ignore[arg-type]
    return link, made[0]


def _ask(link: object, timeout_ms: int = 5000) -> asyncio.Task[object]:
    exchange = link.exchange(ApiVersionsRequest(), ApiVersionsResponse, version=0, timeout_ms=timeout_ms)  # type: ignore[attr-defined]
    return asyncio.create_task(exchange)


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@async_test
async def test_a_request_to_a_held_port_is_not_sent_before_the_release() -> None:
    links = HeldLinks(_nothing)
    link, inner = _link(links)
    links.hold([END_POINT.port])
    asked = _ask(link)
    await _turns()
    assert inner.sent == 0
    links.hold([END_POINT.port + 1])
    await _turns()
    assert inner.sent == 1
    inner.answer.set_result(ApiVersionsResponse())
    assert await asked == ApiVersionsResponse()


@async_test
async def test_an_answer_from_a_held_port_is_held() -> None:
    links = HeldLinks(_nothing)
    link, inner = _link(links)
    asked = _ask(link)
    await _turns()
    links.hold([END_POINT.port])
    inner.answer.set_result(ApiVersionsResponse())
    await _turns()
    assert not asked.done()
    links.hold([])
    assert await asked == ApiVersionsResponse()


@async_test
async def test_the_end_of_each_exchange_is_told() -> None:
    ended: list[str] = []
    links = HeldLinks(lambda: ended.append("exchange"))
    link, inner = _link(links)
    links.hold([END_POINT.port])
    cancelled, answered = _ask(link), _ask(link)
    await _turns()
    assert ended == []
    cancelled.cancel()
    await _turns()
    assert ended == ["exchange"]
    links.hold([])
    inner.answer.set_result(ApiVersionsResponse())
    assert await answered == ApiVersionsResponse()
    assert ended == ["exchange"] * 2


@async_test
async def test_what_is_held_times_out_or_ends_with_the_link() -> None:
    links = HeldLinks(_nothing)
    link, inner = _link(links)
    links.hold([END_POINT.port])
    with pytest.raises(TimeoutError):
        await _ask(link, timeout_ms=10)
    asked = _ask(link)
    await _turns()
    link.close()  # type: ignore[attr-defined]
    with pytest.raises(ConnectionAbortedError):
        await asked
    assert inner.is_closed
    assert inner.sent == 0
