"""Keeps the last answered requests of a broker, encoded, within limits of number and bytes.

A `RequestObserver`. It may keep neither request nor response, which hold whole frames: it copies the bytes of the
request, and encodes the response again. The oldest requests are dropped when a limit is reached. Records that
a Fetch sends from files are read when they are few; else only their size is kept.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.codec import encode, encode_parts
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_to_text
from odradek.protocol.messages.fetch import FetchRequest
from odradek.storage.segment.file_records import FileRegion
from odradek.testing.observations.recorded_request import ConnectionView, RecordedRequest
from odradek.testing.observations.waits import Change, Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.broker.network.requests.request import ClientConnection, RequestContext
    from odradek.protocol.codec.codec import Part
    from odradek.protocol.codec.schema import Request, Response
    from odradek.timer.clock import Clock

REQUESTS_MAX: Final = 10_000
"""Of so many requests at most the recorder knows."""

BYTES_MAX: Final = 64 * 1024 * 1024
"""Of all bodies and answers together."""

MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A longer body or answer is not kept."""

FETCHED_BYTES_MAX: Final = 64 * 1024
"""Of the records in one answer; of more there is only the size."""

METADATA_APIS: Final = frozenset({ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA})
"""Requests of the controller that change topics and partitions of the broker."""


@dataclass(slots=True)
class _Open:
    """A request that is not over."""

    received_ms: int
    body: bytes | None
    topic_names: dict[str, str]
    answer: tuple[bytes | int, ...] | None = None
    has_answer: bool = False


class RequestRecorder:
    """The requests of one broker. `topic_name`: the name of a topic id."""

    def __init__(
        self,
        clock: Clock,
        waits: Waits,
        topic_name: Callable[[bytes], str | None],
        *,
        requests_max: int = REQUESTS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._clock = clock
        self._waits = waits
        self._topic_name = topic_name
        self._requests_max = requests_max
        self._bytes_max = bytes_max
        self._open: dict[RequestContext, _Open] = {}
        self._answered: deque[RecordedRequest] = deque()
        self._size = 0
        self.last_number = 0
        """Of the request that was answered last."""
        self.dropped = 0
        """Requests that were dropped because of a limit, since the last `clear`."""

    # RequestObserver

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        encoded = None if ctx.times is None else ctx.times.body
        body = encode(request, ctx.header.api_version) if encoded is None else bytes(encoded)
        self._open[ctx] = _Open(
            received_ms=self._clock.time_ms(),
            body=body if len(body) <= MESSAGE_BYTES_MAX else None,
            topic_names=self._names_of(request),
        )

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        kept = self._open.get(ctx)
        if kept is None or response is None:
            return
        kept.has_answer = True
        parts = _kept_parts(encode_parts(response, ctx.header.api_version))
        if sum(len(part) for part in parts if isinstance(part, bytes)) <= MESSAGE_BYTES_MAX:
            kept.answer = parts

    def request_completed(self, ctx: RequestContext) -> None:
        kept = self._open.pop(ctx, None)
        if kept is not None:
            self.last_number += 1
            self._keep(_recorded(self.last_number, ctx, kept))
        if ctx.header.api_key in METADATA_APIS:
            self._waits.announce(Change.METADATA)
        self._waits.announce(Change.REQUESTS)

    def _names_of(self, request: Request) -> dict[str, str]:
        """The names of the topic ids of a Fetch: later the topic may be deleted."""
        if not isinstance(request, FetchRequest):
            return {}
        ids = {topic.topic_id for topic in request.topics} | {each.topic_id for each in request.forgotten_topics_data}
        ids.discard(ZERO_UUID)
        return {uuid_to_text(topic_id): name for topic_id in ids if (name := self._topic_name(topic_id)) is not None}

    def _keep(self, request: RecordedRequest) -> None:
        self._answered.append(request)
        self._size += request.kept_bytes
        while len(self._answered) > self._requests_max or self._size > self._bytes_max:
            self._size -= self._answered.popleft().kept_bytes
            self.dropped += 1

    # Queries

    def after(self, number: int) -> Iterator[RecordedRequest]:
        """The kept requests with higher numbers, oldest first."""
        if self._answered:
            skipped = max(0, number + 1 - self._answered[0].number)
            for index in range(skipped, len(self._answered)):
                yield self._answered[index]

    @property
    def unanswered(self) -> list[str]:
        """The requests that are not over, in words."""
        return [f"{API[ctx.header.api_key].name} of {ctx.header.client_id}" for ctx in self._open]

    def clear(self) -> None:
        """Forget the answered requests. Numbers go on."""
        self._answered.clear()
        self._size = self.dropped = 0


def _recorded(number: int, ctx: RequestContext, kept: _Open) -> RecordedRequest:
    header, connection, times = ctx.header, ctx.connection, ctx.times
    assert times is not None
    return RecordedRequest(
        number=number,
        api=API[header.api_key].name,
        api_key=header.api_key,
        version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        connection=_connection_view(connection),
        principal=connection.principal,
        software_name=connection.client_software_name,
        software_version=connection.client_software_version,
        received_ms=kept.received_ms,
        duration_ms=max(0, times.completed_ns - times.started_ns) / 1_000_000,
        encoded_body=kept.body,
        encoded_answer=kept.answer,
        has_answer=kept.has_answer,
        is_answer_sent=kept.has_answer and (times.response_bytes > 0 or connection.is_own_broker),
        topic_names=kept.topic_names,
    )


def _connection_view(connection: ClientConnection) -> ConnectionView:
    broker = f"{connection.local_host}:{connection.local_port}"
    return ConnectionView(
        connection_id=f"{broker}-{connection.client_host}:{connection.client_port}-0",
        client_host=connection.client_host,
        client_port=connection.client_port,
        listener=connection.listener_name,
        security_protocol=connection.security_protocol.name,
        is_own_broker=connection.is_own_broker,
    )


def _kept_parts(parts: list[Part]) -> tuple[bytes | int, ...]:
    """The answer, with the records that it sends from files if they are few, else with their sizes."""
    size = sum(0 if isinstance(part, bytes | bytearray | memoryview) else part.size_in_bytes for part in parts)
    return tuple(_kept(part, is_read=size <= FETCHED_BYTES_MAX) for part in parts)


def _kept(part: Part, *, is_read: bool) -> bytes | int:
    if isinstance(part, bytes | bytearray | memoryview):
        return bytes(part)
    if is_read and isinstance(part, FileRegion):
        data = part.read()
        if len(data) == part.size_in_bytes:  # else the file was cut meanwhile
            return data
    return part.size_in_bytes
