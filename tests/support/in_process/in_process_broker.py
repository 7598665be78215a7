"""A whole broker without a socket: requests go in as frames, answers come out decoded.

Everything is real (metadata tree, controller, logs, coordinator, dispatcher, codec) except the network and the clock.
A request is encoded at its version and dispatched; what the handler answers is encoded at that version, decoded again
and compared, so that every answer a test looks at is one that a client could have read.

One event loop per broker, which turns only inside `call`, `run` and `advance`: tests are plain functions.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from odradek.broker.apis.services import Services
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoint import EndPoint
from odradek.broker.fetch.lazy_down_conversion import LazyDownConversionRecords
from odradek.broker.inter_broker.ports import MakeLink
from odradek.broker.machine.io_pool import ThreadIoPool
from odradek.broker.machine.machine import Machine
from odradek.broker.network.requests.large_requests import AbandonedRequests, ConnectionWork
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.requests.throttles import Throttles
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.server import KafkaServer
from odradek.broker.setup.cluster_links import ClusterLinks
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.tree.embedded_tree import METADATA_FILE
from odradek.controller.tree.metadata_tree import MetadataTree
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.framing import SIZE_BYTES
from odradek.protocol.headers import RequestHeader, decode_response, encode_request, encode_response_parts
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.storage.disk.file_system import FileSystem, OsFileSystem
from odradek.storage.segment.file_records import FileRegion
from odradek.testing.node.running.activity import Activity, CountedTree
from odradek.timer.clock import Clock, ManualClock, SystemClock

T = TypeVar("T")

TURNS = 400
"""A request counts as waiting when it is not answered after so many turns of the loop."""

SETTLES = 50
"""How often that is tried for an answer that has to come: the thread of the metadata tree may wait for a processor."""

LONGEST_TIMEOUT_MS = 2**31

START_MS = 1_700_000_000_000
PORT = 9092


class FakeConnection:
    """The peer of requests. `close_reason` is set when the broker hung up."""

    listener_name = "PLAINTEXT"
    client_host = "10.0.0.7"
    client_port = 40_000
    local_host = "broker.example"
    local_port = PORT
    principal = "User:ANONYMOUS"
    security_protocol = SecurityProtocol.PLAINTEXT
    is_token_authenticated = False
    is_own_broker = False
    is_authenticated = True
    authentication = None

    def __init__(self) -> None:
        self.client_software_name = ""
        self.client_software_version = ""
        self.close_reason: str | None = None
        self.begun: list[RequestContext] = []
        self.throttles = Throttles(self.proceed)
        self.answers: dict[int, Response | None] = {}
        self.abandoned = AbandonedRequests(lambda: None)
        self.work = ConnectionWork(self.abandoned, self.listener_name)

    def begin(self, ctx: RequestContext) -> None:
        self.begun.append(ctx)
        ctx.work = self.work

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        header = ctx.header
        if ctx.answer is not None:
            data = b"".join(map(_bytes_of, ctx.answer))
            self.answers[header.correlation_id] = decode_response(
                header.api_key, header.api_version, data[SIZE_BYTES:]
            )[1]
            return
        if response is None:
            self.answers[header.correlation_id] = None
            if ctx.times is not None:
                ctx.times.completed(ctx)
            return
        parts = encode_response_parts(header.api_key, header.api_version, header.correlation_id, response)
        data = b"".join(map(_bytes_of, parts))
        if ctx.times is not None:
            ctx.times.response_bytes = len(data)
            ctx.times.completed(ctx)
        correlation_id, decoded = decode_response(header.api_key, header.api_version, data)
        assert correlation_id == header.correlation_id
        self.answers[correlation_id] = decoded

    def flush_answers(self) -> None: ...

    def proceed(self) -> None: ...

    def refuse(self, ctx: RequestContext, reason: str) -> None:
        self.close_reason = reason

    def close(self, reason: str, *, reset: bool = False) -> None:
        self.close_reason = reason

    def close_after_answers(self, reason: CloseReason, detail: str = "", ctx: RequestContext | None = None) -> None:
        self.abort(reason, detail)

    def abort(self, reason: CloseReason, detail: str = "") -> None:
        self.close_reason = detail or reason.name


class NoSockets:
    """Takes the place of the sockets; knows the dispatcher."""

    def __init__(self, config: BrokerConfig, *rest: object) -> None:
        self._config = config
        self.dispatch = cast("Callable[[FakeConnection, memoryview, int], None]", rest[-1])

    @property
    def end_points(self) -> tuple[EndPoint, ...]:
        return tuple(end_point._replace(port=PORT) for end_point in self._config.listeners.bound)

    async def open(self) -> tuple[EndPoint, ...]:
        return self.end_points

    def start_accepting(self) -> None: ...

    def stop_accepting(self) -> None: ...

    async def update_listeners(self) -> None: ...

    def limits_changed(self) -> None: ...

    def update_ip_connection_rate_quota(self, ip: str | None, rate: float | None) -> None: ...

    async def close(self) -> None: ...


class Waiting:
    """A request that has been dispatched. `answer` is there once it was given."""

    def __init__(self, broker: InProcessBroker, connection: FakeConnection, correlation_id: int) -> None:
        self._broker = broker
        self.connection = connection
        self._correlation_id = correlation_id

    @property
    def is_answered(self) -> bool:
        return self._correlation_id in self.connection.answers

    @property
    def is_over(self) -> bool:
        return self.is_answered or self.connection.close_reason is not None

    @property
    def answer(self) -> Response | None:
        return self.connection.answers[self._correlation_id]


class InProcessBroker:
    def __init__(
        self,
        path: Path,
        settings: Mapping[str, str] | None = None,
        *,
        clock: ManualClock | SystemClock | None = None,
        fs: FileSystem | None = None,
        make_link: MakeLink | None = None,
    ) -> None:
        self.make_link = make_link
        self._fs = OsFileSystem() if fs is None else fs
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(START_MS) if clock is None else clock
        config = BrokerConfig(
            {
                "log.dirs": str(path),
                "offsets.topic.num.partitions": "2",
                "transaction.state.log.num.partitions": "2",
                "log.retention.ms": "-1",
                "listeners": "PLAINTEXT://127.0.0.1:0",
                **(settings or {}),
            }
        )
        self.random = random.Random(1)
        self._correlation_id = 0
        self._io_pool = ThreadIoPool(self.loop)
        self._tree_activity = Activity()
        self.server = self.run(self._make(config))
        try:
            self.run(self.server.start())
        except BaseException:
            self.loop.close()
            raise
        services, links = self.server._services, self.server._links
        sockets = self.server._sockets
        assert services is not None
        assert links is not None
        assert isinstance(sockets, NoSockets)
        self.services: Services = services
        self.links: ClusterLinks = links
        self.dispatch = sockets.dispatch
        self.settle(lambda: services.controller.is_active and services.metadata_cache.is_alive(services.broker_id))

    async def _make(self, config: BrokerConfig) -> KafkaServer:
        machine = replace(Machine.of_process(asyncio.get_running_loop()), fs=self._fs, io_pool=self._io_pool)
        return KafkaServer(
            config,
            clock=self.clock,
            make_sockets=cast("type", NoSockets),
            open_tree=self._open_tree,
            make_link=self.make_link,
            machine=machine,
        )

    async def _open_tree(
        self, config: BrokerConfig, clock: Clock, on_failure: Callable[[BaseException], None]
    ) -> MetadataTree:
        os.makedirs(config.metadata_dir, exist_ok=True)
        tree = await CountedTree.open(os.path.join(config.metadata_dir, METADATA_FILE), clock, on_failure)
        tree.activity = self._tree_activity
        return tree

    def stop(self) -> None:
        self.run(self.server.stop())
        self.loop.close()

    # Time and turns

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 20))

    def settle(self, done: Callable[[], bool]) -> bool:
        """Turn the loop until `done`, or for the usual number of turns.

        Turns in which a thread works for the broker count little: on a busy machine it may wait for a processor or
        for the disk.
        """

        async def turn() -> None:
            turns = 0.0
            while turns < TURNS and not done():
                # The metadata tree answers from its thread: after some turns give it time.
                await asyncio.sleep(0 if turns < 20 else 0.0002)
                turns += self._weight

        self.loop.run_until_complete(turn())
        return done()

    @property
    def _weight(self) -> float:
        """Of the turn that ends."""
        return 1 / SETTLES if self._io_pool.pending or self._tree_activity._jobs else 1

    def advance(self, ms: int) -> None:
        """Let time pass, and run all tasks that are due."""
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(ms)

        async def fire() -> None:
            self.server.timer.advance()
            for _ in range(5):
                await asyncio.sleep(0)

        self.loop.run_until_complete(fire())

    # Requests

    def send(
        self, request: Request, version: int, *, connection: FakeConnection | None = None, client_id: str = "me"
    ) -> Waiting:
        """Dispatch a request; it may still be waiting for its answer."""
        return self.send_frame(self.frame(request, version, client_id=client_id), connection)

    def frame(self, request: Request, version: int, *, client_id: str = "me") -> bytes:
        self._correlation_id += 1
        return encode_request(RequestHeader(ApiKey(request.API_KEY), version, self._correlation_id, client_id), request)

    def send_frame(self, frame: bytes, connection: FakeConnection | None = None) -> Waiting:
        peer = FakeConnection() if connection is None else connection

        async def dispatch() -> None:
            self.dispatch(peer, memoryview(frame), self.clock.monotonic_ms())

        self.loop.run_until_complete(dispatch())
        return Waiting(self, peer, int.from_bytes(frame[4:8], "big"))

    def call(
        self, request: Request, version: int, *, connection: FakeConnection | None = None, client_id: str = "me"
    ) -> Response:
        """The answer, which has to come without a move of the broker's clock."""
        waiting = self.send(request, version, connection=connection, client_id=client_id)
        self.finish_soon(waiting)
        assert waiting.connection.close_reason is None, waiting.connection.close_reason
        assert waiting.is_answered, f"no answer to {request!r}"
        assert waiting.answer is not None
        return waiting.answer

    def finish_soon(self, waiting: Waiting) -> None:
        """Wait for an answer, or the end of the connection, that needs no move of the broker's clock."""
        for _ in range(SETTLES):
            if self.settle(lambda: waiting.is_over):
                break

    def finish(self, waiting: Waiting) -> None:
        """Wait for its answer, until its time-out if necessary."""
        if not self.settle(lambda: waiting.is_over):
            self.advance(LONGEST_TIMEOUT_MS)
            self.settle(lambda: waiting.is_over)
        assert waiting.is_over

    # Topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        assignments: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1 if assignments else partitions,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                        for index, replicas in (assignments or {}).items()
                    ],
                    configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
                )
            ],
            timeout_ms=5_000,
        )
        (result,) = self.call(request, 7).topics  # type: ignore[attr-defined]
        assert result.error_code == 0, result

    def delete_topic(self, name: str) -> None:
        """Delete, and wait until the name is free again, as no request does."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5_000)
        (result,) = self.call(request, 6).responses  # type: ignore[attr-defined]
        assert result.error_code == 0, result
        turns = 0.0
        while turns < TURNS:
            if name not in self.run(self.services.controller.client.topics()):
                return
            self.loop.run_until_complete(asyncio.sleep(0.001))  # the tree's fsyncs take their time on a busy machine
            turns += self._weight
        raise AssertionError(f"{name} is still there")

    def topic_id(self, name: str) -> bytes:
        return self.services.metadata_cache.topic_id(name)


@contextmanager
def in_process_broker(
    path: Path,
    settings: Mapping[str, str] | None = None,
    *,
    clock: ManualClock | SystemClock | None = None,
    fs: FileSystem | None = None,
    make_link: MakeLink | None = None,
) -> Iterator[InProcessBroker]:
    broker = InProcessBroker(path, settings, clock=clock, fs=fs, make_link=make_link)
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def no_bugs_logged() -> Iterator[None]:
    """Fails if any logger logs an exception."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info is not None:
                found.append(self.format(record))

    handler = Handler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert not found, "\n".join(found)


def _bytes_of(part: object) -> bytes:
    if isinstance(part, FileRegion):
        return part.read()
    if not isinstance(part, LazyDownConversionRecords):
        return bytes(cast("bytes", part))
    slices: list[bytes | OSError] = []
    while part.remaining:
        part.next_slice(slices.append)
    return b"".join(cast("list[bytes]", slices))
