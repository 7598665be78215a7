"""Decodes a request frame and calls the handler of its API.

Errors:

- An invalid frame, an API or a version that is not served: the client could not read an error response, so the
  connection is closed and one line is logged. Only ApiVersions is answered, in version 0 and with the served versions,
  because a new client begins with it (KIP-511).
- A KafkaError raised by the handler: the error response of that API.
- Any other exception is a bug: it is logged with its traceback and answered with UNKNOWN_SERVER_ERROR. Exceptions of
  handlers are caught in this module only.

A handler's module is imported at the first request for its API, so that a start does not load unused handlers.

Kafka: KafkaApis.handle, RequestContext.parseRequest.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.apis import HANDLERS, version_gates
from odradek.broker.error_responses import error_response
from odradek.broker.metadata.first_metadata import ANSWERED_FROM_THE_CACHE, ASKS_FOR_BROKERS
from odradek.broker.network.requests.large_requests import LargeRequests, Slot, keeping_place
from odradek.broker.network.requests.loop_time import TimedCoroutine, timed_steps
from odradek.broker.network.requests.request import RequestContext, RequestTimes
from odradek.broker.network.requests.request_observer import RequestObservers, observer_of
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.controller.tree.metadata_tree import TreeError
from odradek.protocol.api import API, ApiKey, ApiSpec
from odradek.protocol.codec.codec import Decoder, EncodeError, decode_in_steps, elements_in_steps
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.limits import MAX_DECODED_VALUES, MAX_STRING_BYTES
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader, UnsupportedVersionError, decode_request_header
from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion
from odradek.timer.sliced_work import run_through

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
    from typing import TypeAlias

    from odradek.broker.apis.services import Services
    from odradek.broker.metadata.first_metadata import FirstMetadata
    from odradek.broker.network.connection.connection import Connection
    from odradek.broker.network.frames.memory_pool import Memory
    from odradek.broker.network.requests.request import RequestCounter, RequestCounters, RequestObserver
    from odradek.broker.network.requests.request_interceptor import RequestInterceptor
    from odradek.protocol.codec.schema import Request, Response
    from odradek.timer.sliced_work import SlicedWork, Steps

    FailedSteps: TypeAlias = Generator[None, None, Response | None]

logger = logging.getLogger(__name__)

LARGE_FRAME_BYTES: Final = 64 * 1024
"""Larger frames are decoded in slices: 64 KiB can name 16,000 partitions, which takes 5 ms."""

FEW_VALUES: Final = 400
"""Of a large Produce: the requests of a producer have some batches. They are decoded at once, in 0.1 ms."""

WAIT_FOR_THE_CONTROLLER: Final = frozenset(
    {
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.CREATE_ACLS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_ACLS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    }
)
"""Their values are in memory until the answer. Large ones have places of their own: other requests must not wait for
the controller.
"""

QUOTES_FIT_BYTES: Final = MAX_STRING_BYTES // 4
"""What an answer quotes of a smaller request, a few times at most, is not too long a text."""

FROM_THE_CONTROLLER: Final = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA})
"""Requests of clients may be waiting for them. They may have ten times the values of others, about every partition of
the cluster. Clients that are no brokers have neither right.
"""

WAIT_FOR_NO_OTHER: Final = FROM_THE_CONTROLLER | {ApiKey.PRODUCE}
"""The records of Produce stay bytes."""


class Route:
    """The handler, the request type and the error response of one API."""

    __slots__ = ("counters", "decoder", "error_response", "handle", "request_type", "spec")

    def __init__(self, spec: ApiSpec, module: Any) -> None:  # noqa: ANN401 - a module has no better type
        self.spec = spec
        self.counters: dict[int, RequestCounter] = {}
        """By version."""
        self.request_type: type[Request] = spec.request_type()
        self.decoder = Decoder(self.request_type)
        self.handle: Callable[[Services, RequestContext, Request], None] = module.handle
        self.error_response: Callable[[Request, int, ErrorCode, str | None], FailedSteps] | None = getattr(
            module, "error_response", None
        )

    def decoded_at_once(self, frame: memoryview, version: int, position: int) -> Request | None:
        """The request in a large frame, if that is a Produce of some batches; else, or if it is invalid, None."""
        if self.spec.key != ApiKey.PRODUCE:
            return None
        try:
            return self.decoder.decode(frame, version, position, FEW_VALUES)
        except DecodeError:
            return None

    def refuse(self, ctx: RequestContext, request: Request, error: KafkaError) -> Steps:
        """Answer with an error, or close the connection if the request has no response; in steps."""
        response = yield from self.failed(request, ctx.header.api_version, error.code, error.specific_message)
        if response is None:
            ctx.close_connection()
        else:
            ctx.reply(response)

    def failed(self, request: Request, version: int, code: ErrorCode, message: str | None) -> FailedSteps:
        """The error response, made in steps; None: the API has none."""
        if self.error_response is None:
            return error_response(self.spec.key, self.spec.response_type(), request, version, code, message)
        return self.error_response(request, version, code, message)


class Dispatcher:
    """Calls the handler of each request. `in_background` runs a coroutine until the broker stops; `slices` runs long
    work a few milliseconds at a time.
    """

    __slots__ = (
        "_apis",
        "_counters",
        "_first_metadata",
        "_gates",
        "_handlers",
        "_in_background",
        "_interceptor",
        "_large_admin_requests",
        "_large_requests",
        "_now_ns",
        "_observer",
        "_observers",
        "_routes",
        "_services",
        "_slices",
    )

    def __init__(
        self,
        services: Services,
        in_background: Callable[[Coroutine[object, object, None]], None],
        first_metadata: FirstMetadata,
        slices: SlicedWork,
        handlers: Mapping[ApiKey, str] = HANDLERS,
        metadata_version: MetadataVersion = LATEST_PRODUCTION,
        apis: Mapping[int, ApiSpec] = API,
    ) -> None:
        """`apis`: the APIs that clients may ask for, by key."""
        self._services = services
        self._apis = apis
        self._first_metadata = first_metadata
        self._in_background = in_background
        self._slices = slices
        self._handlers = handlers
        self._routes: dict[int, Route] = {}
        self._gates = None if metadata_version.has_static_membership else metadata_version
        self._now_ns = services.clock.monotonic_ns
        self._observers: list[RequestObserver] = []
        self._observer: RequestObserver | None = None
        self._counters: RequestCounters | None = None
        self._interceptor: RequestInterceptor | None = None
        self._large_requests = LargeRequests()
        self._large_admin_requests = LargeRequests()

    def intercept(self, interceptor: RequestInterceptor | None) -> None:
        """Give each request from now on to the interceptor in place of its handler; None: to its handler again."""
        self._interceptor = interceptor

    def apply(self, ctx: RequestContext, request: Request) -> None:
        """Call the handler of a request; what it raises is answered. For the interceptor."""
        route = self._routes[ctx.header.api_key]
        try:
            route.handle(self._services, ctx, request)
        except Exception as error:  # noqa: BLE001 - as in `_handle`
            self._refuse(route, ctx, request, error)

    def error_response(
        self, ctx: RequestContext, request: Request, code: ErrorCode, message: str | None
    ) -> Response | None:
        """Kafka's answer to a request that failed; None: the API has none."""
        return run_through(self._routes[ctx.header.api_key].failed(request, ctx.header.api_version, code, message))

    def count_with(self, counters: RequestCounters) -> None:
        """Count each request from now on."""
        self._counters = counters

    def observe(self, observer: RequestObserver) -> None:
        """Call the observer for each request that arrives from now on."""
        self._observers.append(observer)
        self._observer = observer_of(self._observers)

    def stop_observing(self, observer: RequestObserver) -> None:
        """Call the observer only for the requests that it observes already."""
        self._observers.remove(observer)
        self._observer = observer_of(self._observers)

    def dispatch(self, connection: Connection, frame: memoryview, received_ms: int) -> None:
        """Decode and handle one request. Never raises: an invalid frame closes the connection."""
        if connection.authentication is not None and connection.authentication.takes(frame, received_ms):
            return
        try:
            header, position = decode_request_header(frame, self._apis)
            route = self._routes.get(header.api_key) or self._load(header)
            observer, counter = self._observer, None
            if self._counters is not None:
                try:
                    counter = route.counters[header.api_version]
                except KeyError:
                    counter = self._new_counter(route, header)
                counter.left -= 1
                if not counter.left:
                    sampled = counter.sample()
                    observer = sampled if observer is None else RequestObservers((observer, sampled))
            times = None if observer is None else RequestTimes(observer, self._now_ns, self._now_ns(), frame[position:])
            if not connection.is_authenticated:
                connection.close_after_answers(CloseReason.NOT_AUTHENTICATED, f"{header} before authentication")
                return
            if len(frame) <= LARGE_FRAME_BYTES:
                request = route.decoder.decode(frame, header.api_version, position)
            elif (found := route.decoded_at_once(frame, header.api_version, position)) is not None:
                request = found
            else:
                ctx = RequestContext(header, connection, received_ms, len(frame))
                ctx.slices = self._slices
                ctx.times, ctx.counter = times, counter
                ctx.takes_bytes = self._observer is None
                connection.begin(ctx)
                assert ctx.work is not None, "the connection has begun it"
                work = ctx.work.until_done(self._decode_and_handle(connection, route, ctx, frame, position))
                if times is not None:
                    times.end_step()
                    work = timed_steps(times, work)
                self._slices.submit(work)
                return
        except UnsupportedVersionError as unsupported:
            self._refuse_version(connection, unsupported, received_ms, len(frame))
            return
        except DecodeError as error:
            connection.close_after_answers(CloseReason.INVALID_REQUEST, str(error))
            return
        ctx = RequestContext(header, connection, received_ms, len(frame))
        if times is None:
            ctx.counter, ctx.takes_bytes = counter, True
        else:
            ctx.counter, ctx.times = counter, times
            ctx.takes_bytes = self._observer is None  # the times of a sample are taken without the response
        connection.begin(ctx)
        if self._first_metadata.is_awaited:  # tested here too: one call less for each request
            self._begin(route, ctx, request)
        else:
            self._handle(route, ctx, request)
        if times is not None:
            times.end_step()

    def _begin(self, route: Route, ctx: RequestContext, request: Request) -> None:
        """Handle the request, or hold it until the first metadata has arrived."""
        if self._first_metadata.is_awaited and ctx.header.api_key in ANSWERED_FROM_THE_CACHE:
            go_on = partial(self._handle, route, ctx, request)
            close = partial(self._give_up, ctx, "the controller has not sent the brokers of the cluster yet")
            self._first_metadata.hold(go_on, close if ctx.header.api_key in ASKS_FOR_BROKERS else go_on)
        else:
            self._handle(route, ctx, request)

    def _give_up(self, ctx: RequestContext, reason: str) -> None:
        if ctx.memory is not None:
            ctx.memory.release()
        ctx.connection.refuse(ctx, reason)

    def _decode_and_handle(
        self, connection: Connection, route: Route, ctx: RequestContext, frame: memoryview, position: int
    ) -> Steps:
        key, version = ctx.header.api_key, ctx.header.api_version
        max_values: int | None = None
        if key in WAIT_FOR_THE_CONTROLLER:
            yield from self._large_admin_requests.admit(ctx)
        elif key in FROM_THE_CONTROLLER and not self._is_of_a_broker(ctx):
            max_values = MAX_DECODED_VALUES
            yield from self._large_requests.admit(ctx)
        elif key not in WAIT_FOR_NO_OTHER:
            yield from self._large_requests.admit(ctx)
        try:
            request = yield from decode_in_steps(route.request_type, frame, version, position, max_values)
        except DecodeError as error:
            connection.close_after_answers(CloseReason.INVALID_REQUEST, str(error), ctx)
            if ctx.memory is not None:
                ctx.memory.release()
            return
        ctx.elements = yield from elements_in_steps(request)
        self._begin(route, ctx, request)

    def _is_of_a_broker(self, ctx: RequestContext) -> bool:
        """Whether the client may do what brokers do. The handler asks again, refuses, and writes the audit log."""
        from odradek.broker.apis.authorization import authorize
        from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType

        try:
            return authorize(
                self._services,
                ctx,
                AclOperation.CLUSTER_ACTION,
                ResourceType.CLUSTER,
                CLUSTER_NAME,
                log_if_allowed=False,
                log_if_denied=False,
            )
        except Exception:  # noqa: BLE001 - of a custom authorizer; it is answered when the handler asks
            return False

    def serve(self, ctx: RequestContext, request: Request) -> None:
        """Handle a request that this broker sends to itself."""
        route = self._routes.get(ctx.header.api_key) or self._load(ctx.header)
        if self._counters is not None:
            ctx.counter = route.counters.get(ctx.header.api_version) or self._new_counter(route, ctx.header)
        if self._observer is not None:
            ctx.times = RequestTimes(self._observer, self._now_ns, self._now_ns())
            ctx.times.end_step()  # nothing is decoded
        self._handle(route, ctx, request)

    def spawn(self, ctx: RequestContext, request: Request, work: Coroutine[object, object, None]) -> None:
        """Run `work` for a request in a task. Implements `services.Spawn`."""
        ctx.slices = self._slices
        if ctx.size > QUOTES_FIT_BYTES:
            self._keep_for_another_answer(ctx, request)
        timed = work if ctx.times is None else TimedCoroutine(ctx.times, work)
        slot = ctx.memory if ctx.header.api_key in WAIT_FOR_THE_CONTROLLER else None
        if isinstance(slot, Slot):
            slot.hold()
            self._in_background(self._run_in_slot(ctx, request, timed, slot))
        else:
            self._in_background(self._run(ctx, request, timed))

    def in_slices(self, ctx: RequestContext, request: Request, work: Steps) -> None:
        """Run `work` for a request in slices. Implements `services.InSlices`."""
        ctx.slices = self._slices
        if ctx.size > QUOTES_FIT_BYTES:
            self._keep_for_another_answer(ctx, request)
        memory = ctx.memory
        if memory is not None:
            if isinstance(memory, Slot):
                memory.hold()
            else:
                ctx.memory = None
        steps = self._in_steps(ctx, request, work, memory)
        if ctx.work is not None:
            steps = ctx.work.until_done(steps)
        if ctx.times is not None:
            ctx.times.is_in_slices = True
            steps = timed_steps(ctx.times, steps)
        self._slices.submit(steps)

    def _keep_for_another_answer(self, ctx: RequestContext, request: Request) -> None:
        """Not the records of Produce, and not what is freed in slices as soon as it is answered.

        Kafka: KafkaApis.handle: a response that cannot be serialized is an exception of the handler.
        """
        if not ctx.elements and ctx.header.api_key not in WAIT_FOR_NO_OTHER:
            ctx.instead = partial(self._refuse, self._routes[ctx.header.api_key], ctx, request)

    def _in_steps(self, ctx: RequestContext, request: Request, work: Steps, memory: Memory | Slot | None) -> Steps:
        try:
            yield from work
        except Exception as error:  # noqa: BLE001 - `_refuse` tells a KafkaError from a bug
            self._refuse(self._routes[ctx.header.api_key], ctx, request, error)
        finally:
            if memory is not None:
                memory.release()
        if ctx.times is not None:
            ctx.times.handler_returned()
        if ctx.may_pipeline:
            ctx.connection.proceed()

    def _handle(self, route: Route, ctx: RequestContext, request: Request) -> None:
        if ctx.counter is not None and ctx.counter.is_counted_by_request:
            ctx.counter.count_request(ctx, request)
        times = ctx.times
        is_outermost = False
        if times is not None:
            is_outermost = times.begin_step()
            times.handling_begins(ctx, request)
        try:
            if self._gates is not None:
                version_gates.check(ctx.header.api_key, request, self._gates)
            if self._interceptor is None:
                route.handle(self._services, ctx, request)
            else:
                self._interceptor.handle(ctx, request)
        except Exception as error:  # noqa: BLE001 - `_refuse` tells a KafkaError from a bug
            self._refuse(route, ctx, request, error)
        if times is not None:
            if not times.is_in_slices:
                times.handler_returned()
            if is_outermost:
                times.end_step()
        if ctx.memory is not None:
            ctx.memory.release()

    async def _run(self, ctx: RequestContext, request: Request, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - as in `_handle`
            self._refuse(self._routes[ctx.header.api_key], ctx, request, error)

    async def _run_in_slot(self, ctx: RequestContext, request: Request, work: Awaitable[None], slot: Slot) -> None:
        try:
            await self._run(ctx, request, work)
        finally:
            slot.release()

    def _refuse(self, route: Route, ctx: RequestContext, request: Request, error: Exception) -> None:
        if not isinstance(error, KafkaError):
            # No bugs, so no traceback: a failed operation on the metadata tree, for which clients have no error code,
            # and an answer that quotes too long a text of the request.
            trace = None if isinstance(error, TreeError | EncodeError) else error
            host = ctx.connection.client_host
            logger.error("Error when handling request %r from %s: %s", ctx.header, host, error, exc_info=trace)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if ctx.is_answered:
            logger.error("Handler failed after it had replied to %r", ctx.header, exc_info=error)
        elif ctx.size > LARGE_FRAME_BYTES:
            ctx.slices = self._slices
            self._slices.submit(keeping_place(ctx.memory, route.refuse(ctx, request, error)))
        else:
            run_through(route.refuse(ctx, request, error))

    def _load(self, header: RequestHeader) -> Route:
        key = ApiKey(header.api_key)
        module = self._handlers.get(key)
        if module is None:
            raise DecodeError(f"Received request for disabled API {API[key].name}")
        route = Route(API[key], import_module(module))
        self._routes[key] = route
        return route

    def _new_counter(self, route: Route, header: RequestHeader) -> RequestCounter:
        assert self._counters is not None
        counter = route.counters[header.api_version] = self._counters.counter(route.spec.key, header.api_version)
        return counter

    def _refuse_version(
        self, connection: Connection, error: UnsupportedVersionError, received_ms: int, size: int
    ) -> None:
        if not error.is_api_versions:
            connection.close_after_answers(CloseReason.INVALID_REQUEST, str(error))
            return
        from odradek.broker.apis.connection.api_versions import unsupported_version_response

        header = error.header
        header.api_version = 0
        ctx = RequestContext(header, connection, received_ms, size)
        connection.begin(ctx)
        ctx.reply(unsupported_version_response(self._apis))
        if ctx.memory is not None:
            ctx.memory.release()
