"""Links to other brokers that a test can hold: requests and answers wait, as when a network loses every packet.

A request to a held port is not sent, and an answer from there is not given to the sender, until the port is released or
the time-out of the request is over. What was received before is applied at the other end: the sender does not know.

All brokers of a test are on this machine: a port stands for one of them under each name that it may be advertised with.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from odradek.protocol.codec.schema import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.inter_broker.ports import BrokerLink, MakeLink
    from odradek.controller.model.broker_info import EndPoint
    from odradek.protocol.codec.schema import Request

ResponseT = TypeVar("ResponseT", bound=Response)

_MS_PER_S = 1000


class HeldLinks:
    """The links of one broker, and the ports that are held now."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        """`on_end` is called when an exchange ends, with an answer or without."""
        self.on_end = on_end
        self._held: frozenset[int] = frozenset()
        self._changed: set[asyncio.Future[None]] = set()

    def hold(self, ports: Iterable[int]) -> None:
        """Hold these ports and release all others."""
        self._held = frozenset(ports)
        for future in self._changed:
            if not future.done():
                future.set_result(None)

    def is_held(self, port: int) -> bool:
        return port in self._held

    def wrap(self, make_link: MakeLink) -> MakeLink:
        """Links that `make_link` makes, with the hold in front."""

        def make(end_point: EndPoint, /, *, client_id: str) -> HeldLink:
            return HeldLink(self, make_link(end_point, client_id=client_id), end_point)

        return make

    async def change(self, closed: asyncio.Future[None]) -> None:
        """Wait for the next `hold`, or for the end of a link."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.add(future)
        try:
            await asyncio.wait({future, closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._changed.discard(future)


class HeldLink:
    """Implements `BrokerLink`."""

    def __init__(self, links: HeldLinks, inner: BrokerLink, end_point: EndPoint) -> None:
        self._links = links
        self._inner = inner
        self._end_point = end_point
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        try:
            async with asyncio.timeout(timeout_ms / _MS_PER_S):
                await self._release()
                answer = await self._inner.exchange(request, response_type, version=version, timeout_ms=timeout_ms)
                await self._release()
                return answer
        finally:
            self._links.on_end()

    async def _release(self) -> None:
        """Wait until the port is not held. Raises: ConnectionAbortedError when the link is closed."""
        while self._links.is_held(self._end_point.port):
            await self._links.change(self._closed)
            if self._closed.done():
                raise ConnectionAbortedError(f"the link to {self._end_point.host}:{self._end_point.port} was closed")

    def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        self._inner.close()
