"""One request between its arrival and its response: what a handler gets, and how it replies.

A handler calls `reply` exactly once, at once or later, in any order relative to other requests: the connection sends
the responses in the order of the requests. Until then the connection is held: its next request is not even decoded,
unless the handler has set `may_pipeline` (only Produce does, after its append; see `network/connection.py`).

The records of a decoded request are views of the frame it came in. The frame is never reused or overwritten while a
view of it exists, so a handler may keep views as long as it likes; they keep the memory of the frame.

Kafka: RequestChannel.Request, RequestContext.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.schema import Response
    from odradek.protocol.headers import RequestHeader
    from odradek.timer.sliced_work import SlicedWork


class ClientConnection(Protocol):
    """The client connection as handlers see it. Implemented by `network.connection.Connection`."""

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
        """Send the response; called by `RequestContext.reply` only."""

    def flush_answers(self) -> None:
        """Send the finished responses now, not only after the handler has returned."""

    def proceed(self) -> None:
        """Dispatch the next request if it need not wait for unanswered ones."""

    def close(self, reason: str) -> None:
        """Close the connection. Requests in flight go on; their responses are dropped."""


class RequestContext:
    """A request without its decoded body, which the handler gets beside it."""

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
        """Bytes of the frame, for the limits on requests in flight."""
        self.may_pipeline = False
        """The request only waits for replicas: the next Produce may be applied meanwhile."""
        self.is_answered = False
        self.is_ready = False
        """The response, if there is one, is encoded."""
        self.answer: list[Part] | None = None
        """The encoded response, while earlier ones are not sent."""
        self.slices: SlicedWork | None = None
        """Runs long work on this request and encodes its response in slices; None if both are short."""

    def reply(self, response: Response | None) -> None:
        """Send the response; None where the protocol has none (Produce with acks=0)."""
        if self.is_answered:
            raise RuntimeError(f"answered twice: {self.header}")
        self.is_answered = True
        self.connection.complete(self, response)

    def flush(self) -> None:
        """Send the response now: the handler has work left that the client need not wait for."""
        self.connection.flush_answers()

    def close_connection(self) -> None:
        """Close the connection instead of replying: reports an error to a client that expects no response."""
        self.is_answered = True
        self.connection.close("request refused")
