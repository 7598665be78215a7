"""One request between its arrival and its answer: what a handler is told, and how it answers.

A handler calls `reply` exactly once, at once or later, in any order relative to other requests: the connection sends
the answers in the order of the requests. Until then the connection is held, no later request of it is even decoded,
unless the handler has set `may_pipeline` (only Produce does, once its append is done; `network/connection.py` says
why).

The records of a decoded request are views into the frame it came in. The frame belongs to whoever still refers to it:
it is never reused and never written to again, so a handler may keep views as long as it likes, at the price of the
memory.

Kafka: RequestChannel.Request and RequestContext.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.schema import Response
    from odradek.protocol.headers import RequestHeader
    from odradek.timer.sliced_work import SlicedWork


class ClientConnection(Protocol):
    """The peer of a request, as handlers see it. `network.connection.Connection` is the real one."""

    @property
    def listener_name(self) -> str: ...

    @property
    def client_host(self) -> str: ...

    @property
    def client_port(self) -> int: ...

    @property
    def local_host(self) -> str: ...

    @property
    def local_port(self) -> int: ...

    @property
    def principal(self) -> str:
        """`User:name`; `User:ANONYMOUS` on a listener without authentication."""

    client_software_name: str
    client_software_version: str

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        """Take the answer; called by `RequestContext.reply` only."""

    def flush_answers(self) -> None:
        """Send what has been answered now, and not when the handler returns."""

    def proceed(self) -> None:
        """Take up the next request, if it need not wait for those that are not answered."""

    def close(self, reason: str) -> None:
        """Drop the connection. Requests in flight stay in flight, their answers go nowhere."""


class RequestContext:
    """A request as its handler gets it, next to the decoded body."""

    __slots__ = (
        "answer",
        "connection",
        "header",
        "is_answered",
        "is_ready",
        "may_pipeline",
        "received_ms",
        "size",
        "slices",
    )

    def __init__(self, header: RequestHeader, connection: ClientConnection, received_ms: int, size: int) -> None:
        self.header = header
        self.connection = connection
        self.received_ms = received_ms
        """Monotonic time of arrival."""
        self.size = size
        """Bytes of the frame, for the limits on what may be in flight."""
        self.may_pipeline = False
        """What is left of this request is waiting: the next one of its kind may be applied meanwhile."""
        self.is_answered = False
        self.is_ready = False
        """The answer, if there is one, is encoded."""
        self.answer: list[Part] | None = None
        """The encoded answer, while the connection waits for earlier ones."""
        self.slices: SlicedWork | None = None
        """Where work on this request is done, and its answer encoded, if it can be much."""

    def reply(self, response: Response | None) -> None:
        """Answer the request; None where the protocol has no answer (Produce with acks=0)."""
        if self.is_answered:
            raise RuntimeError(f"answered twice: {self.header}")
        self.is_answered = True
        self.connection.complete(self, response)

    def flush(self) -> None:
        """Send the answer now: for a handler that has work left which the client need not wait for."""
        self.connection.flush_answers()

    def close_connection(self) -> None:
        """Close instead of answering: how an error is told to a client that expects no answer."""
        self.is_answered = True
        self.connection.close("request refused")
