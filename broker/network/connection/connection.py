"""One client connection: frames in, requests in order, responses in order.

Order. Apache Kafka mutes a connection from the moment it dispatches a request until the response is sent. Odradek does
the same, with one exception: while a Produce only waits for replicas (`ctx.may_pipeline`; its append is done), the next
Produce is applied and then waits too. Requests are always *applied* in order. Responses are sent in order: a finished
response stays in its context until the earlier ones are sent. Any other request that waits (Fetch, JoinGroup, commit,
auto-creation, authentication) holds the connection: the next request is not even decoded. It is handled in a later turn
of the loop, for what answers the one before is often the handling of another request, which must not lead to a third.

Back-pressure, in both directions. A held connection buffers at most one whole frame, `READ_AHEAD_BYTES` and one chunk;
then reading is paused. Unanswered requests are limited in number and bytes (`MAX_PIPELINED_*`). While the peer does not
read its responses, no request is dispatched, which limits the queued responses too (`response_sender.py`). While the
memory pool is empty, a connection is not read whose next request needs memory (`memory_pool.py`).
Fairness. After `MAX_TURN_MS` a connection lets the others run. Throttling: a muted connection (`throttles.py`) that has
ended applies what it got when the time is over.

End. Everything received before the end of the stream is applied and answered, in order, however long that takes; then
the connection is closed. The last records of a producer with acks=0 that closes its socket are written only so, and a
client may have shut down only its writing side. After a reset no response can be sent: requests are applied up to the
first one that has a response, as in Apache Kafka, where the write of that response fails. All limits apply to such a
connection too. An invalid frame, or a request that closes the connection in place of an answer, does so when the
earlier requests are answered: Apache Kafka has not read it before. TLS begins before the connection. With SASL each
frame goes first to `authentication`; frames are small.

Kafka: KafkaChannel, Selector, Processor.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.network.connection.garbage import describe_garbage
from odradek.broker.network.connection.unread_tls import unread_tls_bytes
from odradek.broker.network.frames.frame_assembler import FrameAssembler, FrameSizeError
from odradek.broker.network.frames.large_frame_receiver import LargeFrameReceiver
from odradek.broker.network.frames.memory_pool import ConnectionMemory
from odradek.broker.network.requests.large_requests import ConnectionWork, keeping_place
from odradek.broker.network.requests.request import MAX_PIPELINED_REQUESTS, drop_from, may_follow
from odradek.broker.network.requests.request_observer import complete_all
from odradek.broker.network.requests.throttles import Throttles
from odradek.broker.network.responses.response_sender import ResponseSender, answer_in_steps
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.network.sockets.direct_socket import end_with_reset
from odradek.broker.network.sockets.host_addresses import host_and_port
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.codec.codec import EncodeError, TooLargeError
from odradek.protocol.headers import encode_response_frame

if TYPE_CHECKING:
    from odradek.broker.network.connection.connection_owner import Authentication, ConnectionOwner
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.schema import Response
    from odradek.timer.task import TimerTask

ANONYMOUS: Final = "User:ANONYMOUS"

READ_AHEAD_BYTES: Final = 64 * 1024
"""Bytes that a held connection buffers before its reading is paused."""

MAX_TURN_MS: Final = 10
"""After this time the connection lets the event loop run other callbacks."""


class Connection(asyncio.Protocol):
    """The protocol object of one accepted socket. Implements `network.request.ClientConnection`."""

    __slots__ = (
        "_close_detail",
        "_close_reason",
        "_ending",
        "_frames",
        "_has_ended",
        "_idle_task",
        "_in_flight",
        "_in_flight_bytes",
        "_is_processing",
        "_is_reading_paused",
        "_is_scheduled",
        "_next_frame",
        "_owner",
        "_reset",
        "_sender",
        "_sending",
        "_transport",
        "_work",
        "authentication",
        "client_host",
        "client_port",
        "client_software_name",
        "client_software_version",
        "is_authenticated",
        "is_token_authenticated",
        "last_active_ms",
        "listener_name",
        "local_host",
        "local_port",
        "principal",
        "security_protocol",
        "throttles",
    )

    is_own_broker: Final = False

    def __init__(
        self,
        owner: ConnectionOwner[Connection],
        listener_name: str,
        max_frame_bytes: int,
        security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
    ) -> None:
        self._owner = owner
        pool = owner.memory_pool
        memory = None if pool is None else ConnectionMemory(pool, self._may_take_memory, self._process)
        self._frames = FrameAssembler(max_frame_bytes, owner.frame_buffers, memory)
        self._next_frame: memoryview | None = None  # a whole one that may not be dispatched yet
        self._in_flight: deque[RequestContext] = deque()
        """Requests that are dispatched and whose response is not sent, oldest first."""
        self._in_flight_bytes = 0
        self._is_processing = self._is_reading_paused = self._is_scheduled = False
        self._has_ended = False  # nothing more will be received
        self._reset: str | None = None
        """The error of a reset, while earlier requests are still being applied."""
        self._sending: list[RequestContext] = []
        """Observed requests whose response is handed to the sender and perhaps not sent."""
        self.throttles = Throttles(self._process)
        self._work = ConnectionWork(owner.abandoned, listener_name)
        self.last_active_ms = owner.clock.monotonic_ms()
        """Monotonic time of the last bytes received or sent; of the acceptance while there were none."""
        self._idle_task: TimerTask | None = None
        self._close_reason, self._close_detail = cast("CloseReason | None", None), ""
        self._ending: tuple[CloseReason, str] | None = None
        """Why the connection is closed when the requests in flight are answered."""
        self._transport: asyncio.Transport | None = None
        self._sender: ResponseSender | None = None
        self.listener_name, self.security_protocol = listener_name, security_protocol
        self.client_host, self.client_port = self.local_host, self.local_port = "", 0
        self.client_software_name = self.client_software_version = "unknown"
        self.principal, self.is_authenticated, self.is_token_authenticated = ANONYMOUS, True, False
        self.authentication: Authentication | None = None  # without SASL, and when the session has no end

    # -- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        if self._close_reason is not None:  # closed before the loop connected it: `max.connections` was exceeded
            transport.abort()
            return
        self.client_host, self.client_port = host_and_port(transport.get_extra_info("peername"), self.client_host)
        self.local_host, self.local_port = host_and_port(transport.get_extra_info("sockname"))
        transport.set_protocol(self._owner.receiver_of(self))
        transport.set_write_buffer_limits(high=int(self.security_protocol.has_tls))  # with TLS 0 would block
        bypass = transport.get_extra_info("sslcontext") is None and transport.get_extra_info("socket") is not None
        open_direct = partial(self._owner.open_direct, transport) if bypass else None
        owner = self._owner
        self._sender = ResponseSender(transport, self, open_direct, owner.io_pool, owner.call_soon, owner.sent_bytes)
        self.last_active_ms = self._owner.clock.monotonic_ms()
        self._idle_task = self._owner.watch_idle(self)
        owner.identify(self)

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        self._process()

    def eof_received(self) -> bool:
        """Returns whether the transport stays open: while requests or responses are left, without TLS."""
        self._has_ended = True
        if not self.security_protocol.has_tls:  # whose transport closes; `connection_lost` goes on with the requests
            self._process()
        return self._close_reason is None and not self.security_protocol.has_tls

    def pause_writing(self) -> None:
        if self._sender is not None:
            self._sender.pause()

    def resume_writing(self) -> None:
        if self._sender is not None:
            self._sender.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        sender, transport, self._transport = self._sender, self._transport, None
        if sender is None or transport is None:  # released before the loop connected it
            return
        was_unsent = sender.is_blocked
        sender.discard()
        if self._close_reason is not None:
            self._release(self._close_reason)
        elif self._ending is not None:
            self.abort(*self._ending)
        elif exc is None and not self.security_protocol.has_tls:
            self.abort(CloseReason.CLIENT_CLOSED)
        elif was_unsent:
            self.abort(CloseReason.CONNECTION_FAILED, str(exc))
        else:  # a reset, or the end of a connection with TLS
            self._has_ended, self._reset = True, str(exc)
            if self.security_protocol.has_tls:
                self._frames.feed(unread_tls_bytes(transport))
            self._process()

    # -- what handlers and the dispatcher call

    def begin(self, ctx: RequestContext) -> None:
        """Add the request to those in flight."""
        self._in_flight.append(ctx)
        self._in_flight_bytes += ctx.size
        ctx.memory, self._frames.frame_memory = self._frames.frame_memory, None
        ctx.work = self._work

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        """Send the response as soon as the earlier ones are sent."""
        sender = self._sender
        is_dropped = self._ending is not None and ctx not in self._in_flight
        if self._close_reason is not None or sender is None or is_dropped:
            return complete_all((ctx,))
        if self._reset is not None and (response is not None or ctx.answer is not None):
            return self.abort(CloseReason.CONNECTION_FAILED, self._reset)
        if response is not None:
            if ctx.slices is not None:
                send, fail = partial(self._encoded, ctx), partial(self._cannot_answer, ctx)
                work = answer_in_steps(ctx.header, response, send, fail)
                return ctx.slices.submit(work if ctx.memory is None else keeping_place(ctx.memory, work))
            try:
                header = ctx.header
                ctx.answer = encode_response_frame(header.api_key, header.api_version, header.correlation_id, response)
            except EncodeError as error:
                return self._cannot_answer(ctx, error)
        self._ready(ctx, sender)

    def _encoded(self, ctx: RequestContext, answer: list[Part]) -> None:
        ctx.instead = None  # it holds the request
        if self._close_reason is None and self._sender is not None:
            ctx.answer = answer
            self._ready(ctx, self._sender)

    def _cannot_answer(self, ctx: RequestContext, error: EncodeError | OSError) -> None:
        if isinstance(error, OSError):  # a segment file that cannot be opened
            self.close_after_answers(CloseReason.RECORDS_UNREADABLE, str(error), ctx)
        elif isinstance(error, TooLargeError) or not ctx.reply_instead(error):
            self.close_after_answers(CloseReason.BROKEN_RESPONSE, str(error), ctx)

    def _ready(self, ctx: RequestContext, sender: ResponseSender) -> None:
        """Send the responses that are ready, from the oldest request on."""
        ctx.is_ready, in_flight = True, self._in_flight
        if not in_flight or ctx is not in_flight[0]:
            return
        urgent = False
        try:
            while in_flight and in_flight[0].is_ready:
                answered = in_flight[0]
                if answered.times is not None:
                    answered.times.sending_begins(answered, sender)
                    self._sending.append(answered)
                if answered.answer is not None:
                    urgent = sender.push(answered.answer) or urgent
                    answered.answer = None
                in_flight.popleft()
                self._in_flight_bytes -= answered.size
        except OSError as error:
            return self._cannot_answer(in_flight[0], error)
        if urgent:
            self.flush_answers()
        if self._is_processing:
            return
        if in_flight:  # the event that completed this request often completes the next ones too: one write for all
            self._process_soon()
        elif self._frames.buffered or self._next_frame is not None or self._has_ended or self._is_reading_paused:
            self.flush_answers()
            self._process_soon()
        else:
            self.last_active_ms = self._owner.clock.monotonic_ms()
            if not urgent:
                self.flush_answers()

    def flush_answers(self) -> None:
        sender = self._sender
        if sender is not None and not sender.is_blocked:
            sender.flush()
            if self._sending:
                self._report_sent(sender)

    def proceed(self) -> None:
        if not self._is_processing:
            self._process_soon()

    def refuse(self, ctx: RequestContext, reason: str) -> None:
        self.close_after_answers(CloseReason.REQUEST_REFUSED, reason, ctx)

    def close(self, reason: str, *, reset: bool = False) -> None:
        if reset and self._transport is not None:
            end_with_reset(self._transport)
        self.abort(CloseReason.REQUEST_REFUSED, reason)

    def close_after_answers(self, reason: CloseReason, detail: str = "", ctx: RequestContext | None = None) -> None:
        """Close when the requests before `ctx`, or all in flight, are answered, and drop what comes behind them."""
        sender, in_flight = self._sender, self._in_flight
        if self._close_reason is not None or sender is None or self._reset is not None:
            return self.abort(reason, detail)
        if (self._ending is not None) if ctx is None else (ctx not in in_flight):
            return  # for an earlier request the connection is closed already
        if ctx is not None:
            drop_from(in_flight, ctx)
        self._ending, self._next_frame = (reason, detail), None
        self._frames.discard()
        self._pause_reading()
        if not self._is_processing:
            self.flush_answers()
            self._close_when_done(sender)

    def abort(self, reason: CloseReason, detail: str = "") -> None:
        """Close the connection at once; unsent bytes are lost."""
        if self._close_reason is not None:
            return
        self._close_reason, self._close_detail = reason, detail
        if self._transport is None:
            return self._release(reason)
        self._owner.priorities.begins_to_close(self)
        self._transport.abort()

    def allow_frames(self, max_frame_bytes: int, *, takes_memory: bool = True) -> None:
        """Replace the limit of frames. `takes_memory`: they take memory of the pool."""
        self._frames.max_size, self._frames.takes_memory = max_frame_bytes, takes_memory

    def transport_info(self, name: str) -> object:
        return None if self._transport is None else self._transport.get_extra_info(name)

    def close_if_idle(self, max_idle_ms: int) -> int:
        """Close if nothing was received or sent for `max_idle_ms`. Returns the ms until the next check, 0 if closed."""
        idle_ms = self._owner.clock.monotonic_ms() - self.last_active_ms
        if idle_ms < max_idle_ms:
            return max_idle_ms - idle_ms
        self.abort(CloseReason.IDLE)
        return 0

    # -- what the sender reports

    def sender_ready(self) -> None:
        if self._sender is not None:
            self._report_sent(self._sender)
        self._process()

    def sender_moved(self) -> None:
        self.last_active_ms = self._owner.clock.monotonic_ms()

    def sender_broken(self, reason: CloseReason, detail: str) -> None:
        self.abort(reason, detail)

    # -- the receiver of large frames

    def large_frame_space(self) -> memoryview:
        return self._frames.free_space()

    def large_frame_received(self, count: int) -> None:
        self._frames.received(count)
        self.last_active_ms = self._owner.clock.monotonic_ms()
        request = self._frames.finish_direct_receive()
        if request is None:
            if self._is_held() and self._frames.buffered >= READ_AHEAD_BYTES:
                self._pause_reading()
            return
        if self._transport is not None:
            self._transport.set_protocol(self._owner.receiver_of(self))
        assert self._next_frame is None, "a large frame is received only while no earlier frame waits"
        self._next_frame = request
        self._process()

    # -- private

    def _process(self) -> None:
        """Dispatch the requests that need not wait, then send the finished responses."""
        sender = self._sender
        # asked for in the condition itself, mypyc would take it for None below, where dispatching may have closed it
        is_closed = self._close_reason is not None
        if self._is_processing or is_closed or sender is None:
            return
        self._is_processing = True
        owner, frames = self._owner, self._frames
        started_ms = now_ms = self.last_active_ms = owner.clock.monotonic_ms()
        try:
            while not (sender.is_blocked or self.throttles.active):
                request = self._next_frame
                if request is None and frames.buffered:
                    request = frames.next_frame()
                if request is None:
                    break
                if self._in_flight and not may_follow(self._in_flight, self._in_flight_bytes, request):
                    self._next_frame = request
                    break
                if now_ms - started_ms >= MAX_TURN_MS:
                    self._next_frame = request
                    self._process_soon()
                    break
                self._next_frame = None
                owner.dispatch(self, request, now_ms)
                if self._close_reason is not None:
                    return
                if frames.buffered:
                    now_ms = owner.clock.monotonic_ms()
            if self._has_ended and self.throttles.active and self._next_frame is None:
                self._next_frame = self._frames.next_frame()  # to be applied when the time is over, if there is one
        except FrameSizeError as error:
            if self.authentication is not None and self.authentication.refuses_frame():
                return self._pause_reading()  # until the connection is closed
            self.close_after_answers(CloseReason.INVALID_FRAME, describe_garbage(error, frames.leading_bytes()))
        finally:
            self._is_processing = False
        self.flush_answers()
        if self._close_reason is None and (self._has_ended or self._ending is not None):
            self._close_when_done(sender)
        elif frames.buffered or self._next_frame is not None or self._is_reading_paused:
            self._regulate_reading()

    def _close_when_done(self, sender: ResponseSender) -> None:
        """Close after the end of the stream, or of what is answered, once all earlier requests are answered."""
        self._owner.priorities.client_ended(self)
        if self._ending is not None:
            if self._in_flight or sender.is_blocked:
                return
            if self.security_protocol.has_tls and self._transport is not None:
                # It may have a part of the answers. `abort` would drop them, as does more that the client has sent.
                return self._transport.close()
            return self.abort(*self._ending)
        has_work = self._next_frame is not None or bool(self._in_flight) or self._frames.waits_for_memory
        if self.throttles.active and has_work:
            return
        if self._reset is None:
            if not (has_work or sender.is_blocked):
                self.abort(CloseReason.CLIENT_CLOSED)
        elif self._next_frame is None or (self._in_flight and not self._in_flight[-1].may_pipeline):
            self.abort(CloseReason.CONNECTION_FAILED, self._reset)

    def _release(self, reason: CloseReason) -> None:
        """Release everything: the transport is closed and no request is left to apply.

        References back to the connection go too. In a cycle it would be garbage that is collected very late.
        """
        if self._idle_task is not None:
            self._idle_task.cancel()
            self._idle_task = None
        sending, self._sending = self._sending, []
        complete_all(sending)
        complete_all(ctx for ctx in self._in_flight if ctx.is_answered)
        self.throttles.close()
        self._in_flight.clear()
        self._next_frame = None
        self._frames.discard()
        self._sender = None
        self._work.connection_closed()
        self._owner.connection_closed(self, reason, self._close_detail)

    def _report_sent(self, sender: ResponseSender) -> None:
        if self._sending and not sender.is_blocked:
            sent, self._sending = self._sending, []
            complete_all(sent)

    def _may_take_memory(self) -> bool:
        """Whether the next request would be dispatched when it has arrived."""
        return not (self._in_flight or self.throttles.active)

    def _is_held(self) -> bool:
        """Whether the next frame would have to wait."""
        if self._next_frame is not None or self.throttles.active:
            return True
        if self._sender is not None and self._sender.is_blocked:
            return True
        in_flight = self._in_flight
        return bool(in_flight) and not (in_flight[-1].may_pipeline and len(in_flight) < MAX_PIPELINED_REQUESTS)

    def _regulate_reading(self) -> None:
        transport = self._transport
        if transport is None or self._close_reason is not None:
            return
        if self._frames.waits_for_memory:
            return self._pause_reading()
        if self._is_held():
            waiting = self._frames.buffered + (0 if self._next_frame is None else len(self._next_frame))
            if waiting >= READ_AHEAD_BYTES:
                self._pause_reading()
            return
        if self._is_reading_paused:
            self._is_reading_paused = False
            transport.resume_reading()
        if self._frames.wants_direct_receive and not isinstance(transport.get_protocol(), LargeFrameReceiver):
            transport.set_protocol(LargeFrameReceiver(self))

    def _pause_reading(self) -> None:
        if not (self._is_reading_paused or self._has_ended) and self._transport is not None:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _process_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._owner.call_soon(self._process_scheduled)

    def _process_scheduled(self) -> None:
        self._is_scheduled = False
        self._process()
