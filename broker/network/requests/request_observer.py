"""The watchers of requests, as the dispatcher and the connections call them: none, one or several.

Kafka: RequestChannel.Request.updateRequestMetrics.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.broker.network.requests.request import RequestContext, RequestObserver
    from odradek.protocol.codec.schema import Request, Response


logger = logging.getLogger(__name__)


class RequestObservers:
    """Passes each call on to some observers, in order.

    The first exception of each is logged, and none leaves: it would take the answer from the client.
    """

    __slots__ = ("_failed", "_observers")

    def __init__(self, observers: Sequence[RequestObserver]) -> None:
        self._observers = tuple(observers)
        self._failed: list[RequestObserver] = []

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        for observer in self._observers:
            self._call(observer, observer.request_decoded, ctx, request)

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        for observer in self._observers:
            self._call(observer, observer.response_made, ctx, response)

    def request_completed(self, ctx: RequestContext) -> None:
        for observer in self._observers:
            self._call(observer, observer.request_completed, ctx)

    def _call(
        self, observer: RequestObserver, method: Callable[..., None], ctx: RequestContext, *arguments: object
    ) -> None:
        try:
            method(ctx, *arguments)
        except Exception as error:
            if observer not in self._failed:
                self._failed.append(observer)
                name = type(observer).__name__
                logger.error("%s failed at %r; further errors of it are not logged", name, ctx.header, exc_info=error)


def observer_of(observers: Sequence[RequestObserver]) -> RequestObserver | None:
    """One observer that stands for all of them, and never raises; None if there are none."""
    return RequestObservers(observers) if observers else None


def complete_all(contexts: Iterable[RequestContext]) -> None:
    """Complete the observed requests among them."""
    for ctx in contexts:
        if ctx.times is not None:
            ctx.times.completed(ctx)
