"""The watchers of requests, as the dispatcher and the connections call them: none, one or several.

Kafka: RequestChannel.Request.updateRequestMetrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.broker.network.request import RequestContext, RequestObserver
    from odradek.protocol.codec.schema import Request, Response


class RequestObservers:
    """Passes each call on to several observers, in order."""

    __slots__ = ("_observers",)

    def __init__(self, observers: Sequence[RequestObserver]) -> None:
        self._observers = tuple(observers)

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        for observer in self._observers:
            observer.request_decoded(ctx, request)

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        for observer in self._observers:
            observer.response_made(ctx, response)

    def request_completed(self, ctx: RequestContext) -> None:
        for observer in self._observers:
            observer.request_completed(ctx)


def observer_of(observers: Sequence[RequestObserver]) -> RequestObserver | None:
    """One observer that stands for all of them; None if there are none."""
    if len(observers) > 1:
        return RequestObservers(observers)
    return observers[0] if observers else None


def complete_all(contexts: Iterable[RequestContext]) -> None:
    """Complete the observed requests among them."""
    for ctx in contexts:
        if ctx.times is not None:
            ctx.times.completed(ctx)
