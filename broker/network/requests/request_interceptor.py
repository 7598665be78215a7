"""The port through which faults on command get the requests of clients (`broker/faults/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.codec.schema import Request


class RequestInterceptor(Protocol):
    """Handles each request in place of its handler. Without one a request costs one test for None."""

    def handle(self, ctx: RequestContext, request: Request) -> None:
        """Have the request handled (`Dispatcher.apply`), now, later, changed, or never. What it raises is answered as
        if the handler had raised it.
        """
