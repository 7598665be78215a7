"""The replicas of two brokers, one of which follows the other over a link without a network, for tests of replication.

The leader answers with the broker's own handlers, and every request and answer is encoded and decoded. Both clocks are
moved by hand, together.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from odradek.broker.apis.records import fetch, list_offsets
from odradek.broker.apis.services import Services
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.fetch.fetch_session_cache import FetchSessionCache
from odradek.broker.fetch.replication_quota import ReplicationQuota
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.quotas.quota_managers import QuotaManagers
from odradek.broker.replica_manager.replica_manager import ReplicaManager
from odradek.broker.replication.fetcher_settings import FetcherSettings, FetchersSettings, RemoteLeaderSettings
from odradek.broker.replication.replica_fetchers import ReplicaFetcherManager
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import decode
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, decode_request_header, encode_request
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from odradek.timer.sliced_work import run_through
from tests.support.disks.logs import DeferredIoPool, append, batch
from tests.support.in_process.in_process_broker import FakeConnection
from tests.support.in_process.replication.replicas import TP, Replicas

FOLLOWER_ID, LEADER_ID = 0, 1
UNLIMITED = 2**63 - 1
TURNS = 60

ResponseT = TypeVar("ResponseT", bound=Response)


class _Connection(FakeConnection):
    """Hands over the one answer it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        super().complete(ctx, response)
        answer = self.answers[ctx.header.correlation_id]
        if answer is not None and not self.answered.done():
            self.answered.set_result(answer)


class LeaderLink:
    """A `BrokerLink` to replicas in this process. `requests` are those that went over it; with a `failure` none does;
    `change` may exchange an answer for another.
    """

    def __init__(self, leader: Replicas) -> None:
        self.requests: list[tuple[Request, int]] = []
        self.failure: OSError | None = None
        self.change: Callable[[Request, Response], Response] = honest
        self.is_closed = False
        self.sessions = FetchSessionCache(100, random.Random(1).randint)
        self._services = cast(
            "Services",
            SimpleNamespace(
                authorizer=None,
                broker_id=leader.own_id,
                replica_manager=leader.manager,
                metadata_cache=leader.cache,
                clock=leader.disk.clock,
                in_slices=lambda ctx, request, work: run_through(work),
                config=SimpleNamespace(
                    fetch_max_bytes=55 * 1024 * 1024, listeners=SimpleNamespace(advertise_connected_address=False)
                ),
                fetch_sessions=self.sessions,
                quotas=QuotaManagers(BrokerConfig({}), leader.disk.clock, leader.disk.timer),
            ),
        )

    @property
    def fetches(self) -> list[FetchRequest]:
        return [request for request, _ in self.requests if isinstance(request, FetchRequest)]

    @property
    def offsets_asked(self) -> list[tuple[int, int]]:
        """(timestamp, leader epoch) of each ListOffsets."""
        asked = [request for request, _ in self.requests if isinstance(request, ListOffsetsRequest)]
        parts = [part for request in asked for topic in request.topics for part in topic.partitions]
        return [(part.timestamp, part.current_leader_epoch) for part in parts]

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        assert version is not None, "followers announce no versions"
        if self.failure is not None:
            raise self.failure
        frame = encode_request(RequestHeader(ApiKey(request.API_KEY), version, 7, "client"), request)
        header, position = decode_request_header(frame)
        sent = decode(type(request), frame, version, position=position)
        self.requests.append((sent, version))
        connection = _Connection()
        ctx = RequestContext(header, connection, 0, len(frame))
        handle: Callable[[Services, RequestContext, Any], None] = (
            fetch.handle if isinstance(sent, FetchRequest) else list_offsets.handle
        )
        handle(self._services, ctx, sent)
        response = await connection.answered
        answer = self.change(sent, response)
        assert isinstance(answer, response_type)
        return answer

    def close(self) -> None:
        self.is_closed = True


class Following:
    """`leader` and `follower`, which fetches for real. Use inside a running loop."""

    def __init__(
        self,
        path: Path,
        overrides: dict[str, str] | None = None,
        *,
        fetcher_count: int = 1,
        pool: DeferredIoPool | None = None,
        log_dirs: Sequence[Path] = (),
    ) -> None:
        """`pool` is the follower's, and so are `log_dirs`, beside its first one."""
        self.leader = Replicas(path / "leader", overrides, own_id=LEADER_ID)
        self.links: list[LeaderLink] = []
        self.client_ids: list[str] = []
        self.port = 9092
        self.fetcher_count = fetcher_count
        self.bytes_per_second = UNLIMITED
        self.follower = Replicas(
            path / "follower",
            overrides,
            log_dirs=log_dirs,
            own_id=FOLLOWER_ID,
            io_pool=pool,
            make_fetchers=self._make_fetchers,
        )
        self.fetchers = cast("ReplicaFetcherManager", self.follower.manager.fetchers)

    def _make_fetchers(self, manager: ReplicaManager) -> ReplicaFetcherManager:
        follower_log_manager = manager.partitions._environment.log_manager
        clock = follower_log_manager.environment.clock
        settings = FetchersSettings(
            make_link=self._make_link,
            end_point=lambda broker_id: (
                EndPoint(f"h{broker_id}", self.port, "PLAINTEXT", SecurityProtocol.PLAINTEXT) if self.port else None
            ),
            count=lambda: self.fetcher_count,
            leader=RemoteLeaderSettings(broker_id=FOLLOWER_ID, broker_epoch=lambda: 77),
            fetcher=FetcherSettings(
                broker_id=FOLLOWER_ID, quota=ReplicationQuota(clock, lambda: self.bytes_per_second)
            ),
        )
        return ReplicaFetcherManager(
            manager.partitions,
            follower_log_manager,
            settings,
            complete_delayed=manager.complete_delayed,
            mark_for_truncation=manager.moves.mark_for_truncation,
        )

    def _make_link(self, end_point: EndPoint, /, *, client_id: str) -> LeaderLink:
        link = LeaderLink(self.leader)
        self.links.append(link)
        self.client_ids.append(client_id)
        return link

    @property
    def link(self) -> LeaderLink:
        return self.links[-1]

    def lead(self, tp: TopicPartition = TP, *, epoch: int = 0) -> None:
        """LeaderAndIsr with broker 1 as leader: first to the leader, then to the follower."""
        self.tell_leader(tp, epoch=epoch)
        self.tell_follower(tp, epoch=epoch)

    def tell_leader(self, tp: TopicPartition = TP, *, epoch: int = 0, isr: Sequence[int] | None = None) -> None:
        replicas = [LEADER_ID, FOLLOWER_ID]
        error = self.leader.lead(tp, epoch=epoch, partition_epoch=epoch, replicas=replicas, isr=isr)
        assert error == ErrorCode.NONE

    def tell_follower(self, tp: TopicPartition = TP, *, epoch: int = 0) -> None:
        assert self.follower.follow(tp, leader=LEADER_ID, epoch=epoch, partition_epoch=epoch) == ErrorCode.NONE

    def append(self, *values: bytes, tp: TopicPartition = TP) -> None:
        """A batch of each value to the leader's log."""
        for value in values:
            self.leader.append(batch(value), tp)

    async def turns(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def advance(self, ms: int) -> None:
        """Let time pass on both sides, and run all tasks that are due."""
        self.leader.advance(ms)
        self.follower.advance(ms)
        await self.turns()

    def leader_log(self, tp: TopicPartition = TP) -> UnifiedLog:
        return _log(self.leader, tp)

    def log(self, tp: TopicPartition = TP) -> UnifiedLog:
        """The follower's."""
        return _log(self.follower, tp)

    def is_followed(self, tp: TopicPartition = TP) -> bool:
        return any(tp in fetcher.states for _, fetcher in self.fetchers._fetchers.values())

    def resume(self) -> None:
        """Fetch again after a shutdown, with the next LeaderAndIsr."""
        manager = self.follower.manager
        self.fetchers = manager.fetchers = manager.controller_requests._fetchers = self._make_fetchers(manager)

    def shutdown(self) -> None:
        self.fetchers.shutdown()


async def behind_the_leaders_start(following: Following) -> None:
    """The follower has offset 0, the leader offsets from 3 on; neither has the new epoch yet."""
    following.lead()
    following.append(b"a")
    await following.turns()
    following.follower.stop(delete=False, epoch=0)
    following.append(b"b", b"c", b"d")
    following.leader.fetch(4, replica_id=FOLLOWER_ID)
    following.leader.manager.delete_records(0, {TP: 3}, lambda results: None)
    following.leader.log_manager.delete_old_segments()


def _log(replicas: Replicas, tp: TopicPartition) -> UnifiedLog:
    log = replicas.manager.partition(tp).log
    assert log is not None
    return log


def bytes_of(log: UnifiedLog) -> bytes:
    """The bytes of the log's files."""
    return b"".join(path.read_bytes() for path in sorted(Path(log.dir).glob("*.log")))


def error_in(response: FetchResponse, code: ErrorCode, partitions: Sequence[int] = (0,)) -> FetchResponse:
    """The answer with an error on these partitions."""
    for topic in response.responses:
        for data in topic.partitions:
            if data.partition_index in partitions:
                data.error_code, data.records = code, b""
    return response


def honest(request: Request, response: Response) -> Response:
    """The unchanged answer: for `LeaderLink.change`."""
    return response


async def ends_after_the_leaders(following: Following) -> None:
    """The follower has offsets up to 3, and no epochs; the leader has offset 0."""
    following.lead()
    await following.turns()
    append(following.log(), b"a", b"b", b"c")
    following.log().state.leader_epochs.clear()
    following.log().update_high_watermark(3)
    following.append(b"d")
