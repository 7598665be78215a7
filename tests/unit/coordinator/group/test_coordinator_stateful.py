"""Random consumers against a group coordinator: they join, die, restart, commit, and the log and the leader fail them.

What must hold whatever happens:
- a request is answered once, and every request is answered in the end;
- within a generation a partition is given to one member at most, and what a member is given is what its leader said;
- the generation grows as long as the coordinator stays, and never falls behind the last stored one;
- an acknowledged offset is never lost, not even when another coordinator reads it from the log;
- the books of a group add up (group_metadata.py says which);
- when everybody has gone, no session, barrier or timer is left behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.coordinator.group.offsets.offset_api import Outcome
from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import run_through
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.coordinator_log import FakeTransactionVerifier, InMemoryCoordinatorLog

ResponseT = TypeVar("ResponseT")

GROUP = "g"
PARTITIONS = range(4)
SESSION_MS = 10_000
REBALANCE_MS = 20_000


class Consumer:
    """A client that does what it is told. With `eager` it sends the next request from within the answer."""

    def __init__(self, world: World, name: str, *, version: int, instance: str | None, eager: bool) -> None:
        self.world = world
        self.name = name
        self.version = version
        self.instance = instance
        self.eager = eager
        self.member_id = ""
        self.generation = -1
        self.share: bytes | None = None
        self.plan: dict[str, list[int]] = {}
        self.is_alive = True

    @property
    def context(self) -> GroupRequestContext:
        return GroupRequestContext(client_id=self.name, client_host="h", api_version=self.version)

    def join(self) -> None:
        self.share = None
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance if self.version >= 5 else None,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=self.name.encode()),
                JoinGroupRequestProtocol(name="sticky", metadata=b""),
            ],
        )
        self.world.coordinator.join_group(self.context, request, self.world.asked(self, self._joined))

    def _joined(self, response: JoinGroupResponse) -> None:
        match response.error_code:
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                self.world.then(self, self.join)
            case ErrorCode.NONE:
                self.member_id, self.generation = response.member_id, response.generation_id
                self.world.generation_seen(response.generation_id)
                shares: dict[str, list[int]] = {member.member_id: [] for member in response.members}
                if shares and not response.skip_assignment:
                    for partition, member_id in zip(PARTITIONS, sorted(shares) * len(PARTITIONS), strict=False):
                        shares[member_id].append(partition)
                    self.world.assigned(response.generation_id, shares)
                self.plan = shares if response.skip_assignment is False else {}
                self.world.then(self, self.sync)
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                self.member_id = ""
            case _:
                pass

    def sync(self) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance if self.version >= 5 else None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=bytes(partitions))
                for member_id, partitions in self.plan.items()
            ],
        )
        generation, member_id, owner = self.generation, self.member_id, self.instance or self.member_id

        def synced(response: SyncGroupResponse) -> None:
            if response.error_code == ErrorCode.NONE:
                self.share = response.assignment
                self.world.share_received(generation, member_id, owner, response.assignment)
            elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""

        context = GroupRequestContext(client_id=self.name, client_host="h", api_version=5)
        self.world.coordinator.sync_group(context, request, self.world.asked(self, synced))

    def heartbeat(self) -> None:
        def beaten(response: HeartbeatResponse) -> None:
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.world.then(self, self.join)
            elif response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""

        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.member_id)
        self.world.coordinator.heartbeat(self.context, request, self.world.asked(self, beaten))

    def commit(self, partition: int, offset: int) -> None:
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation if self.member_id else -1,
            member_id=self.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)],
                )
            ],
        )

        def committed(outcome: Outcome) -> None:
            if not any(outcome.values()):
                self.world.acknowledged[partition] = max(offset, self.world.acknowledged.get(partition, -1))

        context = GroupRequestContext(client_id=self.name, client_host="h", api_version=9)
        run_through(self.world.coordinator.commit_offsets(context, request, self.world.asked(self, committed)))

    def leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)],
        )
        context = GroupRequestContext(client_id=self.name, client_host="h", api_version=5)
        self.member_id = ""

        def left(response: LeaveGroupResponse) -> None:
            assert len(response.members) <= 1

        run_through(self.world.coordinator.leave_group(context, request, self.world.asked(self, left)))


class World(RuleBasedStateMachine):
    """The coordinator, its log and its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(1_700_000_000_000, monotonic_ms=0)
        self.log = InMemoryCoordinatorLog(partition_count=1)
        self.consumers: list[Consumer] = []
        self.acknowledged: dict[int, int] = {}
        self.unanswered: Counter[Consumer] = Counter()
        self.next_offset = count(1)
        self.names = count(1)
        self.uuids = count(1)
        self.epoch = 0
        self.newest_generation = 0
        self.assignments: dict[tuple[int, int], dict[str, list[int]]] = {}
        self.shares: dict[tuple[int, int], dict[str, bytes]] = {}
        self.start()

    def start(self) -> None:
        self.timer = SystemTimer(self.clock)
        self.coordinator = GroupCoordinator(
            config=GroupConfig(group_initial_rebalance_delay_ms=1_000, group_max_size=4),
            log=self.log,
            clock=self.clock,
            timer=self.timer,
            new_uuid=lambda: str(next(self.uuids)),
            verify_transaction=FakeTransactionVerifier(),
        )
        self.coordinator.startup()
        self.coordinator.on_elected(0, self.epoch)
        self.let_pass(0)
        self.newest_generation = 0

    # -- what consumers tell ------------------------------------------------------------------------------------------

    def asked(self, consumer: Consumer, then: Callable[[ResponseT], None]) -> Callable[[ResponseT], None]:
        coordinator = self.coordinator
        self.unanswered[consumer] += 1
        answered = False

        def respond(response: ResponseT) -> None:
            nonlocal answered
            assert not answered
            answered = True
            assert coordinator is self.coordinator
            self.unanswered[consumer] -= 1
            if consumer.is_alive:
                then(response)

        return respond

    def then(self, consumer: Consumer, action: Callable[[], None]) -> None:
        """The consumer's next request: from within the answer, or a moment later."""
        if consumer.eager:
            action()
        else:
            coordinator = self.coordinator
            self.timer.schedule(5, lambda: action() if consumer.is_alive and coordinator is self.coordinator else None)

    def generation_seen(self, generation: int) -> None:
        assert generation >= self.newest_generation
        self.newest_generation = generation

    def assigned(self, generation: int, shares: dict[str, list[int]]) -> None:
        self.assignments[self.epoch, generation] = shares

    def share_received(self, generation: int, member_id: str, owner: str, share: bytes) -> None:
        shares = self.shares.setdefault((self.epoch, generation), {})
        assert shares.setdefault(owner, share) == share
        planned = self.assignments.get((self.epoch, generation))
        if planned is not None and member_id in planned:
            assert list(share) == planned[member_id]

    # -- rules --------------------------------------------------------------------------------------------------------

    def let_pass(self, ms: int) -> None:
        end_ms = self.clock.monotonic_ms() + ms
        while (due_ms := self.timer.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.monotonic_ms()))
            self.timer.advance()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def idle(self, pick: int) -> Consumer | None:
        """A living consumer that is not waiting for an answer."""
        idle = [one for one in self.consumers if one.is_alive and not self.unanswered[one]]
        return idle[pick % len(idle)] if idle else None

    @precondition(lambda self: sum(one.is_alive for one in self.consumers) < 6)
    @rule(version=st.sampled_from([3, 4, 5, 8, 9]), static=st.booleans(), eager=st.booleans())
    def start_consumer(self, version: int, static: bool, eager: bool) -> None:
        name = f"c{next(self.names)}"
        instance = name if static and version >= 5 else None
        consumer = Consumer(self, name, version=version, instance=instance, eager=eager)
        self.consumers.append(consumer)
        consumer.join()

    @rule(pick=st.integers(0, 100))
    def restart_static_consumer(self, pick: int) -> None:
        static = [one for one in self.consumers if one.instance is not None]
        if not static:
            return
        old = static[pick % len(static)]
        old.is_alive = False
        new = Consumer(self, old.name, version=old.version, instance=old.instance, eager=old.eager)
        self.consumers.remove(old)
        self.consumers.append(new)
        new.join()

    @rule(pick=st.integers(0, 100))
    def join(self, pick: int) -> None:
        if consumer := self.idle(pick):
            consumer.join()

    @rule(pick=st.integers(0, 100))
    def sync(self, pick: int) -> None:
        if consumer := self.idle(pick):
            consumer.sync()

    @rule()
    def heartbeat_all(self) -> None:
        for consumer in list(self.consumers):
            if consumer.is_alive and not self.unanswered[consumer]:
                consumer.heartbeat()

    @rule(pick=st.integers(0, 100))
    def leave(self, pick: int) -> None:
        if consumer := self.idle(pick):
            consumer.leave()

    @rule(pick=st.integers(0, 100))
    def kill(self, pick: int) -> None:
        living = [one for one in self.consumers if one.is_alive]
        if living:
            living[pick % len(living)].is_alive = False

    @rule(pick=st.integers(0, 100), partition=st.sampled_from(PARTITIONS))
    def commit(self, pick: int, partition: int) -> None:
        if consumer := self.idle(pick):
            consumer.commit(partition, next(self.next_offset))

    @rule(ms=st.sampled_from([1, 10, 500, 1_000, 5_000, 9_999, 20_000, 61_000]))
    def wait(self, ms: int) -> None:
        self.let_pass(ms)

    @rule()
    def settle(self) -> None:
        """A few quiet seconds, enough for the living to agree if nothing is in their way."""
        for _ in range(4):
            for consumer in list(self.consumers):
                if consumer.is_alive and not self.unanswered[consumer]:
                    if consumer.member_id:
                        consumer.heartbeat()
                    else:
                        consumer.join()
            self.let_pass(1_000)

    @rule(hold=st.booleans())
    def hold_appends(self, hold: bool) -> None:
        self.log.hold = hold

    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]), n=st.integers(1, 3))
    def release_appends(self, error: ErrorCode, n: int) -> None:
        self.log.release(error, n)

    @rule(
        error=st.sampled_from(
            [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE]
        )
    )
    def fail_appends(self, error: ErrorCode) -> None:
        self.log.error = error

    @rule()
    def leader_moves_away_and_back(self) -> None:
        self.epoch += 1
        self.coordinator.on_resigned(0, self.epoch)
        assert not list(self.coordinator.groups)
        assert self.coordinator.waiting_count == 0
        self.log.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert not +self.unanswered
        self.epoch += 1
        self.coordinator.on_elected(0, self.epoch)
        self.newest_generation = 0
        self.let_pass(1)

    @rule()
    def coordinator_dies(self) -> None:
        """Parked requests die with their connections."""
        self.epoch += 1
        self.log.forget_waiting()
        self.unanswered.clear()
        self.start()

    # -- invariants ---------------------------------------------------------------------------------------------------

    @invariant()
    def a_partition_has_one_owner_in_a_generation(self) -> None:
        for shares in self.shares.values():
            owned = Counter(partition for share in shares.values() for partition in share)
            assert not owned or max(owned.values()) == 1

    @invariant()
    def acknowledged_offsets_are_there(self) -> None:
        found: dict[int, int] = {}

        def fetched(response: OffsetFetchResponse) -> None:
            (group,) = response.groups
            assert group.error_code == ErrorCode.NONE
            for topic in group.topics:
                found.update((one.partition_index, one.committed_offset) for one in topic.partitions)

        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
        context = GroupRequestContext(client_id="", client_host="h", api_version=9)
        run_through(self.coordinator.fetch_offsets(context, request, fetched))
        for partition, offset in self.acknowledged.items():
            assert found.get(partition, -1) >= offset

    @invariant()
    def the_books_add_up(self) -> None:
        for group in self.coordinator.groups:
            members = list(group.members)
            ids = {member.member_id for member in members}
            assert group.awaiting_join_count == sum(member.is_awaiting_join for member in members)
            assert (group.leader_id in ids) == bool(members)
            assert not group.pending_members & ids
            replaceable = {one.name for one in self.consumers if one.instance is not None}
            assert all(one.rpartition("-")[0] in replaceable for one in group.pending_sync_members - ids)
            statics = {member.group_instance_id: member.member_id for member in members if member.is_static}
            assert group.static_member_count == len(statics)
            assert all(group.static_member_id(instance) == member_id for instance, member_id in statics.items())
            assert (group.state is GroupState.EMPTY) <= (not members)
            assert group.awaiting_join_count <= 4  # group.max.size

    def teardown(self) -> None:
        for consumer in self.consumers:
            consumer.is_alive = False
        self.log.error = ErrorCode.NONE
        self.log.hold = False
        self.log.release()
        self.let_pass(10 * 60_000)
        assert not +self.unanswered
        assert self.coordinator.waiting_count == 0
        assert self.timer.size == 1  # the next sweep for expired offsets
        for group in self.coordinator.groups:
            assert group.state is GroupState.EMPTY


TestGroupCoordinator = World.TestCase
TestGroupCoordinator.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
