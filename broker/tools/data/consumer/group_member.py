"""A member of a consumer group: join, heartbeat, commit, leave.

The heartbeats run beside the consumer. When one says that the group rebalances, `needs_rejoin` is set, and the consumer
joins again between two records: so it can commit what it has printed before another member takes over.

Rebalances are eager (all partitions are given up before the join) unless cooperative-sticky is the only assignor: then
the member claims what it has, and gives up what the assignment does not have any more (KIP-429).

Kafka: ConsumerCoordinator, AbstractCoordinator.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.broker.tools.command.socket_loop import Event, Task, cancel, spawn
from odradek.broker.tools.data.client.data_client import Unavailable
from odradek.broker.tools.data.consumer.assignors import ASSIGNORS, COOPERATIVE_STICKY, STICKY
from odradek.broker.tools.data.consumer.member_metadata import (
    Claim,
    Subscriber,
    decode_assignment,
    decode_sticky_subscription,
    decode_subscription,
    encode_assignment,
    encode_sticky_subscription,
    encode_subscription,
)
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import RETRIABLE, ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.protocol.codec.schema import Request

GROUP_COORDINATOR: Final = 0
"""The key type in FindCoordinator."""

PROTOCOL_TYPE: Final = "consumer"
JOIN_MARGIN_MS: Final = 5_000
"""Added to the time that a coordinator may hold JoinGroup. Kafka: AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE."""

_REJOIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
_FORGOTTEN: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

ResponseT = TypeVar("ResponseT", bound=Response)
CountPartitions = Callable[[Collection[str]], Awaitable[Mapping[str, int]]]
"""The number of partitions of those topics that exist."""


class GroupConfig(NamedTuple):
    """Settings, with the defaults of Apache Kafka's consumer."""

    group_id: str
    group_instance_id: str | None = None
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    """Names in `ASSIGNORS`, the preferred first. The group uses one that all its members offer."""

    @property
    def is_cooperative(self) -> bool:
        """Whether the member keeps its partitions while the group rebalances."""
        return self.assignors == (COOPERATIVE_STICKY,)


class GroupMember:
    """`join` until it has partitions; then `needs_rejoin` says when to join again."""

    def __init__(self, client: DataClient, config: GroupConfig) -> None:
        self.config = config
        self.needs_rejoin = True
        self.is_leader = False
        self.has_lost_partitions = False
        """The group has forgotten the member: others may have its partitions. The consumer resets it."""
        self.failure: CommandFailed | None = None
        self._client = client
        self._member_id = ""
        self._generation = -1
        self._assigned_generation = -1
        self._previous: Claim | None = None
        """What the member got last, also if the group has forgotten it since: for the assignor sticky."""
        self._is_joining = False
        self._coordinator: int | None = None
        self._heartbeats: Task[None] | None = None
        self._stopped = Event()

    async def join(
        self,
        topics: Collection[str],
        count_partitions: CountPartitions,
        owned: Collection[TopicPartition] = (),
    ) -> list[TopicPartition]:
        """Join or rejoin the group, and get the assigned partitions. A cooperative member keeps `owned` meanwhile.

        `count_partitions` is called if this member leads the group. Raises: CommandFailed.
        """
        self._is_joining = True
        try:
            while True:
                self.needs_rejoin = False
                try:
                    joined = await self._join(topics, owned)
                    if joined is not None:
                        assigned = await self._sync(joined, count_partitions)
                        if assigned is not None:
                            self._assigned_generation = self._generation
                            self._previous = Claim(frozenset(assigned), self._generation)
                            self._start_heartbeats()
                            return assigned
                        continue
                except (OSError, Unavailable):
                    self._coordinator = None
                await self._client.back_off()
        finally:
            self._is_joining = False

    async def _join(self, topics: Collection[str], owned: Collection[TopicPartition]) -> JoinGroupResponse | None:
        """None: the request has to be repeated."""
        config = self.config
        claim = Claim() if self._assigned_generation < 0 else Claim(frozenset(owned), self._assigned_generation)
        request = JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=self._subscription(name, topics, claim))
                for name in config.assignors
            ],
        )
        timeout_ms = config.max_poll_interval_ms + JOIN_MARGIN_MS
        response = await self._ask(request, JoinGroupResponse, timeout_ms=timeout_ms)
        code = ErrorCode.for_code(response.error_code)
        if code == ErrorCode.NONE:
            self._member_id = response.member_id
            self._generation = response.generation_id
            self.is_leader = response.leader == response.member_id
            return response
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            return await self._join(topics, owned)
        self._judge(code, "JoinGroup")
        return None

    def _subscription(self, assignor: str, topics: Collection[str], claim: Claim) -> bytes:
        """The metadata for an assignor."""
        if assignor == STICKY:
            return encode_sticky_subscription(topics, self._previous)
        return encode_subscription(topics, claim if assignor == COOPERATIVE_STICKY else None)

    async def _sync(self, joined: JoinGroupResponse, count_partitions: CountPartitions) -> list[TopicPartition] | None:
        """None: the group has to be joined again."""
        assignments = []
        if self.is_leader and not joined.skip_assignment:
            members = _subscribers(joined)
            counts = await count_partitions(sorted({topic for member in members for topic in member.topics}))
            assignments = _assign(members, joined.protocol_name, counts)
        request = SyncGroupRequest(
            group_id=self.config.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        timeout_ms = self.config.max_poll_interval_ms + JOIN_MARGIN_MS
        response = await self._ask(request, SyncGroupResponse, timeout_ms=timeout_ms)
        code = ErrorCode.for_code(response.error_code)
        if code == ErrorCode.NONE:
            try:
                return decode_assignment(response.assignment)
            except DecodeError as error:
                raise CommandFailed(f"group {self.config.group_id}: {error}") from error
        self._judge(code, "SyncGroup")
        return None

    async def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The committed offsets; partitions without one are left out. Raises: CommandFailed."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        wanted = [OffsetFetchRequestTopics(name=name, partition_indexes=found) for name, found in by_topic.items()]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.config.group_id, topics=wanted)], require_stable=True
        )
        while True:
            try:
                response = await self._ask(request, OffsetFetchResponse)
            except (OSError, Unavailable):
                self._coordinator = None
            else:
                errors = {ErrorCode.for_code(code) for code in error_codes(response)} - {ErrorCode.NONE}
                if not errors:
                    return {
                        TopicPartition(topic.name, partition.partition_index): partition.committed_offset
                        for topic in response.groups[0].topics
                        for partition in topic.partitions
                        if partition.committed_offset >= 0
                    }
                for code in errors - {ErrorCode.UNSTABLE_OFFSET_COMMIT}:
                    self._judge(code, "OffsetFetch")
            await self._client.back_off()

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Commit offsets as a member. Returns those that are committed: none if the group has moved on, and not those
        of topics that do not exist, which no repetition brings back.

        Raises: Unavailable if there is no coordinator that takes them, CommandFailed for an error that stays.
        Kafka: ConsumerCoordinator.OffsetCommitResponseHandler; it repeats the commit for a topic that does not exist.
        """
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append(
                OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
            )
        if not by_topic:
            return {}
        if self._generation < 0:  # such a commit counts as one from outside the group: an empty group would take it
            sys.stderr.write(
                "odradek: warning: offsets are not committed: the member has lost its place in the group\n"
            )
            return {}
        request = OffsetCommitRequest(
            group_id=self.config.group_id,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            group_instance_id=self.config.group_instance_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=found) for name, found in by_topic.items()],
        )
        began_ms = self._client.clock.monotonic_ms()
        while True:
            try:
                response = await self._ask(request, OffsetCommitResponse)
            except OSError:
                self._coordinator = None
            else:
                committed = self._committed_of(offsets, response)
                if committed is not None:
                    return committed
            if self._client.clock.monotonic_ms() - began_ms >= self._client.config.api_timeout_ms:
                raise Unavailable(f"group {self.config.group_id}: offsets could not be committed")
            await self._client.back_off()

    def _committed_of(
        self, offsets: Mapping[TopicPartition, int], response: OffsetCommitResponse
    ) -> dict[TopicPartition, int] | None:
        """The offsets that a response says are committed; None: the request has to be repeated."""
        refused = {
            TopicPartition(topic.name, partition.partition_index): ErrorCode.for_code(partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
            if partition.error_code != ErrorCode.NONE
        }
        errors = set(refused.values())
        for code in errors:
            self._judge(code, "OffsetCommit")
        if not errors.isdisjoint(_REJOIN):
            names = ", ".join(sorted(code.name for code in errors))
            sys.stderr.write(f"odradek: warning: offsets are not committed: {names}\n")
            return {}
        if errors - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            return None
        for key, code in sorted(refused.items()):
            sys.stderr.write(f"odradek: warning: the offset of {key} is not committed: {code.name}\n")
        return {key: offset for key, offset in offsets.items() if key not in refused}

    async def leave(self) -> None:
        """Leave the group, so that the others need not wait for the session to end. A failure is ignored."""
        self._stopped.set()
        if self._heartbeats is not None:
            await cancel([self._heartbeats])
        if self._coordinator is None or not self._member_id or self.config.group_instance_id is not None:
            return  # a static member comes back under its name
        member = MemberIdentity(member_id=self._member_id, reason="the consumer is being closed")
        request = LeaveGroupRequest(group_id=self.config.group_id, members=[member])
        try:
            await self._client.ask(self._coordinator, request, LeaveGroupResponse, purpose="group")
        except OSError:
            return

    def _start_heartbeats(self) -> None:
        if self._heartbeats is None or self._heartbeats.is_done:
            self._heartbeats = spawn(self._beat())

    async def _beat(self) -> None:
        """Send heartbeats while the member has partitions."""
        try:
            while not self._stopped.is_set:
                await self._client.wait(self.config.heartbeat_interval_ms, self._stopped)
                if self.needs_rejoin or self._is_joining:
                    continue  # nothing to say until the consumer has joined again
                request = HeartbeatRequest(
                    group_id=self.config.group_id,
                    generation_id=self._generation,
                    member_id=self._member_id,
                    group_instance_id=self.config.group_instance_id,
                )
                generation = self._generation
                try:
                    response = await self._ask(request, HeartbeatResponse)
                except (OSError, Unavailable):
                    self._coordinator = None
                    continue
                is_news = generation == self._generation and not self._is_joining
                if is_news and response.error_code != ErrorCode.NONE:
                    self._judge(ErrorCode.for_code(response.error_code), "Heartbeat")
        except CommandFailed as error:
            self.failure = error

    def _judge(self, code: ErrorCode, what: str) -> None:
        """Note what follows from an error: another coordinator, another join. Raises: CommandFailed for all others."""
        if code in _MOVED:
            self._coordinator = None
        elif code in _REJOIN:
            self.needs_rejoin = True
            if code in _FORGOTTEN:
                self._generation = self._assigned_generation = -1
                self.has_lost_partitions = True
                if code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
        elif code not in RETRIABLE:
            raise CommandFailed(f"group {self.config.group_id}: {what}: {error_text(code)}")

    async def _ask(
        self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None = None
    ) -> ResponseT:
        if self._coordinator is None:
            self._coordinator = await self._client.find_coordinator(self.config.group_id, GROUP_COORDINATOR)
        return await self._client.ask(self._coordinator, request, response_type, purpose="group", timeout_ms=timeout_ms)


def _subscribers(joined: JoinGroupResponse) -> list[Subscriber]:
    """Raises: CommandFailed."""
    decoded = decode_sticky_subscription if joined.protocol_name == STICKY else decode_subscription
    try:
        return [decoded(member.member_id, member.group_instance_id, member.metadata) for member in joined.members]
    except DecodeError as error:
        raise CommandFailed(f"the subscription of a member of the group cannot be read: {error}") from error


def _assign(
    members: list[Subscriber], protocol_name: str | None, counts: Mapping[str, int]
) -> list[SyncGroupRequestAssignment]:
    """The assignment of each member, by the assignor that all have. Raises: CommandFailed."""
    assignor = ASSIGNORS.get(protocol_name or "")
    if assignor is None:
        raise CommandFailed(f"the group has chosen an assignor that was not offered: {protocol_name}")
    return [
        SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
        for member_id, partitions in assignor(members, counts).items()
    ]
