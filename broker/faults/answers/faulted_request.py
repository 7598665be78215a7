"""What the handler of a request gets in place of its context: the answer goes to a fault, which decides what is sent.

It has no memory, times and counter: those of the request stay with its own context, which is completed once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.network.requests.request import RequestContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.codec.schema import Response


class FaultedRequest(RequestContext):
    """A request whose answer is given to `deliver`."""

    __slots__ = ("_deliver", "_outer")

    def __init__(self, outer: RequestContext, deliver: Callable[[Response | None], object]) -> None:
        super().__init__(outer.header, outer.connection, outer.received_ms, outer.size)
        self.slices = outer.slices
        self._outer = outer
        self._deliver = deliver

    def reply(self, response: Response | None) -> None:
        if self.is_answered:
            raise RuntimeError(f"answered twice: {self.header}")
        self.is_answered = True
        if self._outer.slices is None:
            self._outer.slices = self.slices
        self._deliver(response)

    def close_connection(self, response: Response | None = None, *, reset: bool = False) -> None:
        self.is_answered = True
        self._outer.close_connection(response, reset=reset)
