"""The link of a broker to itself: requests go to the handlers without being encoded.

A controller sends LeaderAndIsr to its own broker, a leader may send AlterPartition to the controller in its own
process, and a broker that stops may be the controller. Callers use this link like any other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

from odradek.broker.machine.timed_waits import Deadline
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.requests.throttles import Throttles
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Response
from odradek.protocol.headers import RequestHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.codec.schema import Request
    from odradek.timer.system_timer import SystemTimer

ResponseT = TypeVar("ResponseT", bound=Response)


class OwnLink:
    """Implements `ports.BrokerLink`. Requests may overlap; the synchronous part of a handler runs in `exchange`."""

    def __init__(self, broker_id: int, listener_name: str, timer: SystemTimer) -> None:
        self._client_id = str(broker_id)
        self._listener_name = listener_name
        self._timer = timer
        self._serve: Callable[[RequestContext, Request], None] | None = None
        self._is_ended = False

    def serve(self, serve: Callable[[RequestContext, Request], None]) -> None:
        """Set the dispatcher's function; the senders of requests are built before the handlers."""
        self._serve = serve

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        assert self._serve is not None, "a request was sent before the broker was wired"
        if self._is_ended:
            raise ConnectionAbortedError("this broker is shutting down")
        api_key = ApiKey(request.API_KEY)
        header = RequestHeader(api_key, API[api_key].max_version if version is None else version, 0, self._client_id)
        caller = _Caller(self._listener_name)
        self._serve(RequestContext(header, caller, 0, 0), request)
        with Deadline(self._timer, timeout_ms, lambda: f"{type(request).__name__} to this broker itself"):
            return cast("ResponseT", await caller.answer)

    def close(self) -> None:
        """Nothing to close: other senders of requests have the same link."""

    def end(self) -> None:
        """Refuse requests from now on. The controller still sends some, and logs must not be created any more."""
        self._is_ended = True


class _Caller:
    """Implements `request.ClientConnection` for one request."""

    client_host = local_host = "localhost"
    client_port = local_port = 0
    principal = "User:ANONYMOUS"
    security_protocol = SecurityProtocol.PLAINTEXT
    is_token_authenticated = False
    is_own_broker = True

    def __init__(self, listener_name: str) -> None:
        self.listener_name = listener_name
        self.throttles = Throttles(self.proceed)
        self.client_software_name = self.client_software_version = "unknown"
        self.answer: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        if ctx.times is not None:
            ctx.times.completed(ctx)
        if not self.answer.done():  # it is done after a time-out
            self.answer.set_result(response)

    def flush_answers(self) -> None:
        """Answers are not buffered here."""

    def proceed(self) -> None:
        """There is no next request."""

    def refuse(self, ctx: RequestContext, reason: str) -> None:
        self.close(reason)

    def close(self, reason: str, *, reset: bool = False) -> None:
        if not self.answer.done():
            self.answer.set_exception(ConnectionAbortedError(reason))
