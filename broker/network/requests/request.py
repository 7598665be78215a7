"""One request between its arrival and its response: what a handler gets, and how it replies.

A handler calls `reply` exactly once, at once or later, in any order relative to other requests: the connection sends
the responses in the order of the requests. Until then the connection is held: its next request is not even decoded,
unless the handler has set `may_pipeline` (only Produce does, after its append; see `network/connection/connection.py`).

The records of a decoded request are views of the frame it came in. The frame is never reused or overwritten while a
view of it exists, so a handler may keep views as long as it likes; they keep the memory of the frame. A Produce that
waits for replicas keeps none.

Parts that watch requests (metrics, the request log, request quotas) are `RequestObserver`s. Without them a request
costs one test for None at each of its moments. With them, the dispatcher gives each request its `RequestTimes`. Kafka's
times are then:

- request queue time: decoding, with the turns of a large frame, and the wait for the first metadata;
- local time: the handler, with its work in slices, until it returns or answers;
- remote time: from then on until the response is made: waits for replicas, records, members, the controller;
- response queue time: encoding, and the wait for the responses to earlier requests of the connection;
- response send time: until the kernel has all bytes of the response. Responses that leave in one write are sent
  together, so each of them has the time of the last.

A request whose connection closes is completed at that moment if it is answered, else when its handler answers.

Kafka: RequestChannel.Request, RequestChannel.Request.updateRequestMetrics, RequestContext.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.network.requests.large_requests import keeping_place
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import let_go
from odradek.protocol.codec.field import BYTES_TYPES

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from odradek.broker.network.frames.memory_pool import Memory
    from odradek.broker.network.requests.large_requests import ConnectionWork, Slot
    from odradek.broker.network.requests.throttles import Throttles
    from odradek.broker.network.responses.response_sender import ResponseSender
    from odradek.controller.model.broker_info import SecurityProtocol
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.encode_error import EncodeError
    from odradek.protocol.codec.schema import Request, Response
    from odradek.protocol.headers import RequestHeader
    from odradek.timer.sliced_work import SlicedWork

logger = logging.getLogger(__name__)

MAX_PIPELINED_REQUESTS: Final = 128
"""Produce requests of one connection waiting for replicas at the same time."""

MAX_PIPELINED_BYTES: Final = 32 * 1024 * 1024
"""Bytes of their frames."""

_PRODUCE_KEY: Final = b"\x00\x00"
_NOT_YET: Final = -1


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

    @property
    def security_protocol(self) -> SecurityProtocol:
        """Of the listener."""

    @property
    def is_token_authenticated(self) -> bool:
        """The client has authenticated with a delegation token."""

    @property
    def is_own_broker(self) -> bool:
        """The request comes from this broker itself, through `inter_broker.own_link`. No authorizer is asked then."""

    throttles: Throttles
    """What mutes the connection."""

    client_software_name: str
    client_software_version: str

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        """Send the response; called by `RequestContext.reply` only."""

    def flush_answers(self) -> None:
        """Send the finished responses now, not only after the handler has returned."""

    def proceed(self) -> None:
        """Dispatch the next request if it need not wait for unanswered ones."""

    def refuse(self, ctx: RequestContext, reason: str) -> None:
        """Close the connection in place of an answer to `ctx`, when the requests before it are answered."""

    def close(self, reason: str, *, reset: bool = False) -> None:
        """Close the connection at once. Requests in flight go on; their responses are dropped. `reset`: with a RST."""


class RequestContext:
    """A request without its decoded body, which the handler gets beside it."""

    __slots__ = (
        "answer",
        "connection",
        "counter",
        "elements",
        "header",
        "instead",
        "is_answered",
        "is_ready",
        "may_pipeline",
        "memory",
        "received_ms",
        "size",
        "slices",
        "takes_bytes",
        "times",
        "work",
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
        self.elements: list[list[object]] | None = None
        """What the long arrays of a large request hold. It is freed in slices when the request is answered."""
        self.answer: list[Part] | None = None
        """The encoded response, while earlier ones are not sent."""
        self.slices: SlicedWork | None = None
        """Runs long work on this request and encodes its response in slices; None if both are short."""
        self.memory: Memory | Slot | None = None
        """Of the frame, until the request is handled; None if there is no pool, or the frame takes nothing from it."""
        self.instead: Callable[[EncodeError], None] | None = None
        """Answers again, with an error, when the response cannot be encoded: it quotes a text of the request that is
        as long as a text can be. None: the connection is closed then.
        """
        self.counter: RequestCounter | None = None
        """None while metrics are off, and when the request is counted already."""
        self.times: RequestTimes | None = None
        """None if nothing observes requests."""
        self.takes_bytes = False
        """Nobody looks at the response: the handler may give its bytes to `reply_bytes`. Its times may be taken."""
        self.work: ConnectionWork | None = None
        """Of the connection; None if the broker sent the request to itself."""

    def reply(self, response: Response | None) -> None:
        """Send the response; None where the protocol has none (Produce with acks=0)."""
        if self.is_answered:
            raise RuntimeError(f"answered twice: {self.header}")
        self.is_answered = True
        if self.counter is not None:
            self.counter.count_response(self, response)
        if self.times is not None:
            self.times.response_made(self, response)
        if self.elements is not None:
            self._let_go()
        self.connection.complete(self, response)

    def reply_instead(self, error: EncodeError) -> bool:
        """Give another answer than the one that cannot be encoded, once. Returns whether there is one."""
        instead, self.instead = self.instead, None
        if instead is None:
            logger.error("Cannot encode the response to %s", self.header, exc_info=error)
            return False
        self.is_answered = False
        instead(error)
        return True

    def reply_bytes(self, frame: bytes) -> None:
        """Send a whole frame as the answer, if `takes_bytes`. The handler has counted the request."""
        if self.is_answered:
            raise RuntimeError(f"answered twice: {self.header}")
        self.is_answered = True
        if self.times is not None:
            self.times.response_made(self, None)
        if self.elements is not None:
            self._let_go()
        self.answer = [frame]
        self.connection.complete(self, None)

    def reply_encoded(self, response: Response | None, parts: list[Part]) -> None:
        """Send these parts, which have the size of the frame in front, as the answer; observers get `response`."""
        self._made(response)
        self.answer = parts
        self.connection.complete(self, None)

    def withhold(self, response: Response | None = None) -> None:
        """Never answer: the connection stays open and takes up no other request. Observers get `response`."""
        self._made(response)

    def flush(self) -> None:
        """Send the response now: the handler has work left that the client need not wait for."""
        self.connection.flush_answers()

    def close_connection(self, response: Response | None = None, *, reset: bool = False) -> None:
        """Close the connection instead of replying: reports an error to a client that expects no response. Earlier
        requests are answered first; not with `reset`.

        `response` has the errors, for observers; it is not sent.
        """
        self._made(response)
        if self.times is not None:
            self.times.completed(self)
        if reset:
            self.connection.close("request refused", reset=True)
        else:
            self.connection.refuse(self, "request refused")

    def _let_go(self) -> None:
        if self.elements is not None and self.slices is not None:
            self.slices.submit(keeping_place(self.memory, let_go(self.elements)))
        self.elements = None

    def _made(self, response: Response | None) -> None:
        self.is_answered = True
        self._let_go()
        if self.counter is not None:
            self.counter.count_response(self, response)
        if self.times is not None:
            self.times.response_made(self, response)


def may_follow(in_flight: deque[RequestContext], in_flight_bytes: int, request: memoryview) -> bool:
    """Whether a request may be applied while others of its connection are in flight."""
    return (
        in_flight[-1].may_pipeline
        and bytes(request[:2]) == _PRODUCE_KEY
        and len(in_flight) < MAX_PIPELINED_REQUESTS
        and in_flight_bytes + len(request) <= MAX_PIPELINED_BYTES
    )


def drop_from(in_flight: deque[RequestContext], ctx: RequestContext) -> None:
    """Drop a request and those behind it: none of them will be answered any more."""
    dropped = None
    while dropped is not ctx:
        dropped = in_flight.pop()
        if dropped.times is not None and dropped.is_answered:
            dropped.times.completed(dropped)


class RequestObserver(Protocol):
    """Gets each request of the broker three times. The calls must not wait. What they raise is logged once.

    Neither the request nor the response may be kept: they hold the memory of whole frames.
    """

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        """The handler is called next."""

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        """The handler has answered. None: the protocol has no response, or the connection is closed instead."""

    def request_completed(self, ctx: RequestContext) -> None:
        """The response is sent, or lost with its connection. `ctx.times` is set, for the last time."""


class RequestCounter(Protocol):
    """Counts each request of an API in one version, which takes a microsecond. Measuring times takes longer, so only a
    sample is observed.
    """

    left: int
    """The dispatcher counts it down with each request. At 0 the request is in the sample."""

    plain: int
    """Responses to Produce and Fetch that have no error. The handler, which knows that, adds them here and takes the
    counter away from the context: `count_response` would have to look for it, and costs a call.
    """

    plain_codes: int
    """The partitions of these responses beyond the first of each; one less where there is none."""

    is_counted_by_request: bool
    """Whether `count_request` is called for each request."""

    def sample(self) -> RequestObserver:
        """The observer of a request in the sample; sets `left`."""

    def of_followers(self) -> RequestCounter:
        """The counter of the Fetch requests of followers; the handler puts it into their contexts."""

    def count_request(self, ctx: RequestContext, request: Request) -> None:
        """A request is decoded, and the handler is called next; where `is_counted_by_request` says so."""

    def count_response(self, ctx: RequestContext, response: Response | None) -> None:
        """As `RequestObserver.response_made`, of each request."""


class RequestCounters(Protocol):
    """Makes the counters of the requests that come."""

    def counter(self, key: ApiKey, version: int) -> RequestCounter:
        """Called once for each API and version."""


class RequestTimes:
    """The moments of one request, in ns of the monotonic clock, and other values that only observers read."""

    __slots__ = (
        "_loop_ns",
        "_now_ns",
        "_observer",
        "_sender",
        "_step_began_ns",
        "body",
        "charged_ns",
        "completed_ns",
        "dequeued_ns",
        "is_charged",
        "is_exempt",
        "is_in_slices",
        "is_refused_to_client",
        "local_completed_ns",
        "message_conversions_ns",
        "metric_name",
        "response_bytes",
        "response_completed_ns",
        "response_dequeued_ns",
        "started_ns",
        "temporary_bytes",
        "throttle_ms",
        "weight",
    )

    def __init__(
        self, observer: RequestObserver, now_ns: Callable[[], int], started_ns: int, body: memoryview | None = None
    ) -> None:
        self._observer = observer
        self._now_ns = now_ns
        self.body = body
        """The encoded request, until observers have got the decoded one. None: the broker sent it to itself. It may be
        copied, and must not be kept: it holds the memory of the frame."""
        self.started_ns = started_ns
        """The whole frame has arrived, and the connection may go on with it."""
        self.dequeued_ns = started_ns
        """The handler is called."""
        self.local_completed_ns = _NOT_YET
        """The handler has returned, its slices included."""
        self.response_completed_ns = _NOT_YET
        """The response is made."""
        self.response_dequeued_ns = _NOT_YET
        """The response is encoded, and the earlier ones of the connection are handed to its sender."""
        self.completed_ns = _NOT_YET
        self.throttle_ms = 0
        """How long a quota delays the client."""
        self.message_conversions_ns = 0
        self.temporary_bytes = 0
        """Memory that conversions of records took."""
        self.response_bytes = 0
        """The whole frame, with the records that are sent from files."""
        self.metric_name = ""
        """Kafka's name of the request's metrics, where they are on."""
        self.weight = 1
        """How many requests this one stands for in a sample."""
        self.is_in_slices = False
        """The handler has returned, and its slices go on."""
        self.is_charged = False
        """The request is counted for the quota of its client."""
        self.is_exempt = False
        """No quota limits it."""
        self.is_refused_to_client = False
        """Only brokers may send it: quotas limit it even if its API is exempt."""
        self.charged_ns = 0
        """The time of the event loop that is counted."""
        self._loop_ns = 0
        self._step_began_ns = started_ns
        self._sender: ResponseSender | None = None

    @property
    def loop_ns(self) -> int:
        """The time of the event loop that the request has taken, from its decoding until its response is sent."""
        return self._loop_ns + (0 if self._step_began_ns == _NOT_YET else self._now_ns() - self._step_began_ns)

    def begin_step(self) -> bool:
        """Work on the request begins or goes on. False inside another step, which `end_step` must not end then."""
        if self._step_began_ns != _NOT_YET:
            return False
        self._step_began_ns = self._now_ns()
        return True

    def end_step(self) -> None:
        self._loop_ns += self._now_ns() - self._step_began_ns
        self._step_began_ns = _NOT_YET

    def handling_begins(self, ctx: RequestContext, request: Request) -> None:
        self._observer.request_decoded(ctx, request)
        self.body = None
        self.dequeued_ns = self._now_ns()

    def handler_returned(self) -> None:
        """The handler, or the last of its slices, is done."""
        if self.local_completed_ns == _NOT_YET:
            self.local_completed_ns = self._now_ns()

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        self.response_completed_ns = now_ns = self._now_ns()
        if self.local_completed_ns == _NOT_YET:
            self.local_completed_ns = now_ns
        self._observer.response_made(ctx, response)

    def sending_begins(self, ctx: RequestContext, sender: ResponseSender) -> None:
        self.response_dequeued_ns = now_ns = self._now_ns()
        self._sender = sender
        sender.now_ns = self._now_ns
        if self._step_began_ns == _NOT_YET and ctx.slices is None:
            self._loop_ns += now_ns - self.response_completed_ns  # the encoding
        for part in ctx.answer or ():
            self.response_bytes += len(part) if isinstance(part, BYTES_TYPES) else part.size_in_bytes

    def completed(self, ctx: RequestContext) -> None:
        """The request is over: the observer gets its last call, and the context loses its times."""
        self.completed_ns = now_ns = self._now_ns()
        if self.response_dequeued_ns == _NOT_YET:
            self.response_dequeued_ns = now_ns
        if self._sender is not None:
            sending_ns = self._sender.take_sending_ns()
            if self._step_began_ns == _NOT_YET:  # else it is part of the step
                self._loop_ns += sending_ns
        self._observer.request_completed(ctx)
        ctx.times = None
