"""The parts of the broker that request handlers use; the first argument of handlers. service_setup.py makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.broker.network.sockets.host_addresses import HostAddresses
from odradek.protocol.codec.schema import Request

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.coordinators.transaction_verification import TransactionVerification
    from odradek.broker.fetch.down_conversion import DownConverter
    from odradek.broker.fetch.fetch_session_cache import FetchSessionCache
    from odradek.broker.machine.logger_levels import LoggerLevels
    from odradek.broker.metadata.first_metadata import FirstMetadata
    from odradek.broker.metadata.internal_topics import AutoTopicCreationManager
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.metadata.topic_waits import TopicWaits
    from odradek.broker.network.requests.request import RequestContext, RequestObserver
    from odradek.broker.quotas.quota_managers import QuotaManagers
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.broker.security.authorizer.ports import Authorizer
    from odradek.broker.security.sasl.credential_cache import ScramCredentialCache
    from odradek.broker.security.tokens.token_manager import DelegationTokenManager
    from odradek.controller.admin.config_admin import ConfigAdmin
    from odradek.controller.admin.topic_admin import AdminManager
    from odradek.controller.controller import Controller
    from odradek.coordinator.group.coordinator import GroupCoordinator
    from odradek.coordinator.transaction.coordinator import TransactionCoordinator
    from odradek.storage.disk.ports import IoPool
    from odradek.storage.log.offset_lookup import LongLookups
    from odradek.storage.manager.log_manager import LogManager
    from odradek.timer.clock import Clock
    from odradek.timer.sliced_work import SlicedWork, Steps, Wait
    from odradek.timer.system_timer import SystemTimer


RequestT = TypeVar("RequestT", bound=Request)


class Spawn(Protocol):
    """Runs a coroutine in the server's task group, for handlers that wait for the controller."""

    def __call__(self, ctx: RequestContext, request: Request, work: Coroutine[object, object, None], /) -> None:
        """Run `work`; an exception is answered as if the handler of `request` had raised it."""


class InSlices(Protocol):
    """Runs a generator a few milliseconds at a time, for handlers whose work grows with the size of the request."""

    def __call__(self, ctx: RequestContext, request: Request, work: Steps, /) -> None:
        """Run `work`; an exception is answered as if the handler of `request` had raised it."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Services:
    """The parts of one running broker; none of them is global."""

    config: BrokerConfig
    broker_id: int
    cluster_id: str
    clock: Clock
    timer: SystemTimer
    io_pool: IoPool
    log_manager: LogManager
    replica_manager: ReplicaManager
    metadata_cache: MetadataCache
    first_metadata: FirstMetadata
    fetch_sessions: FetchSessionCache
    down_converter: DownConverter
    long_lookups: LongLookups
    group_coordinator: GroupCoordinator
    transaction_coordinator: TransactionCoordinator
    transaction_verification: TransactionVerification
    controller: Controller
    admin: AdminManager
    config_admin: ConfigAdmin
    topic_creator: AutoTopicCreationManager
    topic_waits: TopicWaits
    quotas: QuotaManagers
    logger_levels: LoggerLevels
    scram_credentials: ScramCredentialCache
    token_manager: DelegationTokenManager | None = None
    """None: there are no delegation tokens."""
    authorizer: Authorizer | None = None
    """None: everything is allowed."""
    topic_overrides: Callable[[Sequence[str]], Awaitable[Mapping[str, Mapping[str, str]]]]
    """Reads the configs of topics from the metadata tree."""
    topic_partition_counts: Callable[[Collection[str]], Awaitable[Mapping[str, int]]]
    """Reads the numbers of partitions of topics from the metadata tree."""
    spawn: Spawn = field(init=False)
    in_slices: InSlices = field(init=False)
    """Both come from the dispatcher, which has the error response of each API."""
    observe_requests: Callable[[RequestObserver], None] = field(init=False)
    """Calls an observer for each request that arrives from now on."""
    slices: SlicedWork
    """Runs long work, a slice of each in turn."""
    host_addresses: HostAddresses = field(init=False)
    """Looks up the hosts that clients name, one at a time: all together they take one thread of the I/O pool."""

    def __post_init__(self) -> None:
        self.host_addresses = HostAddresses(self.io_pool)


SMALL_REQUEST_PARTITIONS: Final = 64
"""A request of up to this many partitions is served without slices: there each microsecond counts."""

SMALL_REQUEST_BYTES: Final = 64 * SMALL_REQUEST_PARTITIONS
"""A frame of this size is served without slices: it contains at most `SMALL_REQUEST_PARTITIONS` partitions with a
batch, or some hundred partitions or members of a group."""


def now_or_in_slices(broker: Services, ctx: RequestContext, request: Request, work: Steps, *, is_small: bool) -> None:
    """Do small work now, and of other work the first step; the rest, and small work that has to wait, in slices."""
    for wait in work:
        if wait is not None or not is_small:
            broker.in_slices(ctx, request, _after(wait, work))
            return


def _after(wait: Wait | None, work: Steps) -> Steps:
    yield wait
    yield from work


def in_slices(
    handle: Callable[[Services, RequestContext, RequestT], Steps],
) -> Callable[[Services, RequestContext, RequestT], None]:
    """Makes a handler of a generator that runs in slices: other work may run at each `yield`.

    The connection dispatches no other request meanwhile, so the order of its requests stays. Other connections do:
    between a check and the write that depends on it there must be no `yield`.
    """

    @wraps(handle)
    def started(broker: Services, ctx: RequestContext, request: RequestT) -> None:
        broker.in_slices(ctx, request, handle(broker, ctx, request))

    return started
