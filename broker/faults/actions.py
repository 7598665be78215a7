"""What happens to a request that a rule decides about: one function for each action.

Delays go through the timer of the broker, so they follow its clock. Answers are changed as decoded values where the
schema has what is changed, and as bytes (`answer_bytes.py`) where the frame itself is wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.faults.answers.answer_bytes import AlteredAnswer, CorruptedRecords, with_wrong_crc
from odradek.broker.faults.answers.answer_errors import copied, levels, merge, set_errors, set_throttle_time
from odradek.broker.faults.answers.faulted_request import FaultedRequest
from odradek.broker.faults.answers.fetch_errors import fail_fetch, partitions_of
from odradek.broker.faults.matching import level_of
from odradek.broker.faults.request_topics import select
from odradek.broker.faults.rules import rules
from odradek.broker.network.responses.response_sender import FileRegion
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.codec import decode, encode, size_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_BYTES, frame, frame_prefix
from odradek.protocol.headers import encode_response_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.apis.services import Services
    from odradek.broker.dispatch import Dispatcher
    from odradek.broker.faults.request_topics import Keep
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.network.requests.throttles import Throttles
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.schema import Request, Response
    from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
    from odradek.protocol.messages.metadata import MetadataResponse
    from odradek.timer.sliced_work import Steps
    from odradek.timer.task import TimerTask

MAX_REMEMBERED: Final = 100
"""Questions of Metadata requests that are known as answered, and, while a rule needs them, their last answers."""

LAST_BYTES_MS: Final = 10
"""Between the last bytes of half a frame and the end of the connection: the event loop may still hold the bytes."""


class Actions:
    """Does what actions say. `remembers_metadata`: a rule for stale metadata exists, so answers themselves are kept.
    Without one it is kept which questions were answered.
    """

    def __init__(self, dispatcher: Dispatcher, services: Services) -> None:
        self._dispatcher = dispatcher
        self._services = services
        self._pending: set[TimerTask] = set()
        self._metadata: OrderedDict[bytes, MetadataResponse | None] = OrderedDict()
        self.remembers_metadata = False
        self._by_type: dict[type, Callable[..., bool | None]] = {
            rules.Error: self._error,
            rules.Delay: self._delay,
            rules.Drop: self._drop,
            rules.BlackHole: self._black_hole,
            rules.HalfAnswer: self._half_answer,
            rules.HalfFrame: self._half_frame,
            rules.SlowBytes: self._slow_bytes,
            rules.Duplicate: self._duplicate,
            rules.CorruptCrc: self._corrupt_crc,
            rules.StaleMetadata: self._stale_metadata,
            rules.Throttle: self._throttle,
        }

    def do(self, action: rules.Action, keep: Keep | None, ctx: RequestContext, request: Request) -> bool:
        """Handle the request with a fault. False: nothing differs from an answer without it."""
        return self._by_type[type(action)](action, keep, ctx, request) is not False

    def nothing(self, ctx: RequestContext, request: Request) -> None:
        """Handle the request as usual."""
        if ctx.header.api_key == ApiKey.METADATA:
            question = _question(ctx, request)
            self._apply(ctx, request, lambda response: self._remember(ctx, question, response))
        else:
            self._dispatcher.apply(ctx, request)

    def has_answered(self, ctx: RequestContext, request: Request) -> bool:
        """Whether this Metadata asks what was asked before and has its answer, so that metadata can be stale."""
        return _question(ctx, request) in self._metadata

    def partitions_of_session(self, request: Request) -> list[tuple[str, int | None]]:
        return partitions_of(self._services.fetch_sessions, cast("FetchRequest", request))

    def close(self) -> None:
        """Give up what is delayed: the connections are closed."""
        pending, self._pending = self._pending, set()
        for task in pending:
            task.cancel()
        self.forget_metadata()

    def forget_metadata(self) -> None:
        self._metadata.clear()

    # Errors

    def _error(self, action: rules.Error, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        key, version = ApiKey(ctx.header.api_key), ctx.header.api_version
        at = level_of(action, key, version)
        assert at is not None, "no rule is for a version of an API without a place for the code"
        if key is ApiKey.FETCH and at is not rules.Level.TOP:
            self._fetch_error(action, keep, ctx, cast("FetchRequest", request))
        elif action.applied or (key in rules.READING and at is not rules.Level.TOP):
            self._apply(ctx, request, lambda response: self._reply_error(ctx, response, action, at, keep))
        else:
            self._refuse(action, at, keep, ctx, request)

    def _reply_error(
        self,
        ctx: RequestContext,
        response: Response | None,
        action: rules.Error,
        at: rules.Level,
        keep: Keep | None,
    ) -> None:
        if response is not None:
            response = copied(response)
            name = self._services.metadata_cache.topic_name
            set_errors(response, ctx.header.api_version, action.code, at, keep, name, action.message)
        ctx.reply(response)

    def _fetch_error(self, action: rules.Error, keep: Keep | None, ctx: RequestContext, request: FetchRequest) -> None:
        request.max_wait_ms = request.min_bytes = 0  # a broker answers an error at once
        named = [part for part in self._partitions(request) if keep is None or keep(*part)]

        def deliver(response: Response | None) -> None:
            cache = self._services.metadata_cache
            fail_fetch(cast("FetchResponse", response), action.code, named, cache, by_id=ctx.header.api_version >= 13)
            ctx.reply(response)

        self._apply(ctx, request, deliver)

    def _partitions(self, request: FetchRequest) -> Iterable[tuple[str, int]]:
        from odradek.broker.faults.request_topics import topics_of

        named = dict.fromkeys(topics_of(request, self._services.metadata_cache.topic_name))
        named.update(dict.fromkeys(self.partitions_of_session(request)))
        return [(topic, index) for topic, index in named if index is not None]

    def _refuse(
        self, action: rules.Error, at: rules.Level, keep: Keep | None, ctx: RequestContext, request: Request
    ) -> None:
        """Answer with an error for the topics and partitions of the rule; the others take effect."""
        name = self._services.metadata_cache.topic_name
        refused, rest, rest_count = request, request, 0
        if keep is not None:
            refused, _ = select(request, keep, name)
            rest, rest_count = select(request, lambda topic, index: not keep(topic, index), name)
        response = self._dispatcher.error_response(ctx, refused, action.code, action.message)
        if response is not None and action.at is not None:
            response = copied(response)
            version = ctx.header.api_version
            for level in levels(type(response), version):
                code = action.code if level is at else ErrorCode.NONE
                set_errors(response, version, code, level, None, name, action.message)
        if rest_count:
            self._apply(ctx, rest, lambda real: self._reply_merged(ctx, real, response))
        elif response is None:
            ctx.close_connection()
        else:
            ctx.reply(response)

    def _reply_merged(self, ctx: RequestContext, response: Response | None, failed: Response | None) -> None:
        if response is not None and failed is not None:
            response = copied(response)
            merge(response, failed)
        if failed is None:
            ctx.close_connection(response)  # as Kafka answers an error of Produce with acks=0
        else:
            ctx.reply(response)

    # Time

    def _delay(self, action: rules.Delay, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        if action.before:
            self._later(action.ms, lambda: self._dispatcher.apply(ctx, request))
        else:
            self._apply(ctx, request, lambda response: self._later(action.ms, lambda: ctx.reply(response)))

    def _throttle(self, action: rules.Throttle, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        def deliver(response: Response | None) -> None:
            if response is not None:
                response = copied(response)
                set_throttle_time(response, ctx.header.api_version, action.ms)
            if action.mute:
                mute = _Mute(ctx.connection.throttles)
                mute.task = self._later(action.ms, mute.end)
                ctx.connection.throttles.add(mute)
            ctx.reply(response)

        self._apply(ctx, request, deliver)

    def _later(self, ms: int, work: Callable[[], object]) -> TimerTask:
        def run() -> None:
            self._pending.discard(task)
            work()

        task = self._services.timer.schedule(ms, run)
        self._pending.add(task)
        return task

    # Answers that do not come

    def _drop(self, action: rules.Drop, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        if action.applied:
            self._apply(ctx, request, lambda response: ctx.close_connection(response, reset=action.reset))
        else:
            ctx.close_connection(reset=action.reset)

    def _black_hole(self, action: rules.BlackHole, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        if action.applied:
            self._apply(ctx, request, ctx.withhold)
        else:
            ctx.withhold()

    # Answers whose bytes are wrong

    def _half_answer(self, action: rules.HalfAnswer, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        def half(parts: list[Part]) -> AlteredAnswer:
            whole = size_of(parts)
            size = whole // 2 if action.bytes is None else min(action.bytes, whole)
            return self._altered([frame_prefix(size), *parts], end=SIZE_BYTES + size)

        self._reply_altered(ctx, request, half)

    def _half_frame(self, action: rules.HalfFrame, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        def finished() -> None:
            if action.close:
                self._later(LAST_BYTES_MS, partial(ctx.connection.close, "half an answer is sent"))

        def half(parts: list[Part]) -> AlteredAnswer:
            framed = frame(parts)
            end = size_of(framed) // 2 if action.bytes is None else action.bytes
            return self._altered(framed, end=end, finished=finished)

        self._reply_altered(ctx, request, half)

    def _slow_bytes(self, action: rules.SlowBytes, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        def slow(parts: list[Part]) -> AlteredAnswer:
            return self._altered(frame(parts), bytes_per_second=action.bytes_per_second)

        self._reply_altered(ctx, request, slow)

    def _altered(
        self,
        parts: list[Part],
        *,
        end: int | None = None,
        finished: Callable[[], None] | None = None,
        bytes_per_second: int | None = None,
    ) -> AlteredAnswer:
        return AlteredAnswer(
            parts,
            self._services.io_pool,
            self._later,
            end=end,
            finished=finished,
            bytes_per_second=bytes_per_second,
        )

    def _reply_altered(
        self, ctx: RequestContext, request: Request, alter: Callable[[list[Part]], AlteredAnswer]
    ) -> None:
        def deliver(response: Response | None) -> None:
            if response is None:
                ctx.reply(None)
            else:
                self._services.slices.submit(_encoding(ctx, response, alter))

        self._apply(ctx, request, deliver)

    def _corrupt_crc(self, action: rules.CorruptCrc, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        name = self._services.metadata_cache.topic_name

        def deliver(response: Response | None) -> None:
            for topic in cast("FetchResponse", response).responses:
                topic_name = topic.topic or name(topic.topic_id) or ""
                for part in topic.partitions:
                    if keep is not None and not keep(topic_name, part.partition_index):
                        continue
                    if isinstance(part.records, bytes | bytearray | memoryview):
                        part.records = with_wrong_crc(part.records)
                    elif part.records is not None:
                        part.records = CorruptedRecords(cast("FileRegion", part.records), self._services.io_pool)
            ctx.reply(response)

        self._apply(ctx, request, deliver)

    # Requests and answers that come twice

    def _duplicate(self, action: rules.Duplicate, keep: Keep | None, ctx: RequestContext, request: Request) -> None:
        version = ctx.header.api_version
        again = decode(API[ctx.header.api_key].request_type(), encode(request, version), version)
        self._apply(ctx, request, lambda first: self._apply(ctx, again, ctx.reply))

    def _stale_metadata(
        self, action: rules.StaleMetadata, keep: Keep | None, ctx: RequestContext, request: Request
    ) -> bool:
        stale = self._metadata.get(_question(ctx, request))
        if stale is None:
            self.nothing(ctx, request)
            return False
        ctx.reply(stale)
        return True

    def _remember(self, ctx: RequestContext, question: bytes, response: Response | None) -> None:
        self._metadata[question] = cast("MetadataResponse", response) if self.remembers_metadata else None
        self._metadata.move_to_end(question)
        if len(self._metadata) > MAX_REMEMBERED:
            self._metadata.popitem(last=False)
        ctx.reply(response)

    def _apply(self, ctx: RequestContext, request: Request, deliver: Callable[[Response | None], object]) -> None:
        self._dispatcher.apply(FaultedRequest(ctx, deliver), request)


class _Mute:
    """Implements `network.throttles.Throttle`."""

    def __init__(self, throttles: Throttles) -> None:
        self._throttles = throttles
        self.task: TimerTask | None = None

    def end(self) -> None:
        self._throttles.remove(self)

    def abandon(self) -> None:
        if self.task is not None:
            self.task.cancel()


def _question(ctx: RequestContext, request: Request) -> bytes:
    """The same for two requests only if they have the same version and content. Clients choose how long that is."""
    content = encode(request, ctx.header.api_version)
    return blake2b(content, digest_size=16, salt=bytes([ctx.header.api_version])).digest()


def _encoding(ctx: RequestContext, response: Response, alter: Callable[[list[Part]], AlteredAnswer]) -> Steps:
    header = ctx.header
    parts = yield from encode_response_in_steps(header.api_key, header.api_version, header.correlation_id, response)
    ctx.reply_encoded(response, [cast("Part", alter(parts))])
