"""Consumes topics: all their partitions (or chosen ones) alone, or a share of them as the member of a group.

`poll` hands out records, and `done` says how far the user is with them: that is what is committed, every
`auto_commit_interval_ms`, before a rebalance, and at the end. A cooperative member hands out records while its group
rebalances, and commits once more before it gives partitions up.

Kafka: KafkaConsumer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import Task, cancel, spawn
from odradek.broker.tools.data.client.data_client import Unavailable
from odradek.broker.tools.data.consumer.fetcher import Chunk, FetchConfig, Fetcher, PartitionState
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, OffsetChoice
from odradek.broker.tools.data.consumer.start_offsets import find_offsets
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.broker.tools.data.consumer.group_member import GroupConfig, GroupMember

TOPIC_TIMEOUT_MS: Final = 60_000


class Subscription(NamedTuple):
    """What is consumed."""

    topics: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    """Topics whose whole name matches one of them; internal topics only match by their name in `topics`."""
    partitions: frozenset[int] | None = None
    """None: all."""

    def matching(self, names: Iterable[str]) -> set[str]:
        """The topics that are consumed among these."""
        return {name for name in names if name in self.topics or any(found.fullmatch(name) for found in self.patterns)}


class ConsumerConfig(NamedTuple):
    """Settings of a consumer."""

    fetch: FetchConfig = FetchConfig()
    group: GroupConfig | None = None
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    start: OffsetChoice = END
    """For partitions without a committed offset."""
    ends: tuple[OffsetChoice, ...] = ()
    """Records from the first of these offsets on are left out. They are looked up when a partition is assigned."""
    metadata_max_age_ms: int = 30_000
    """How often new partitions and new topics of a pattern are looked for."""


class Consumer:
    """`start`, then `poll` and `done`, then `close`."""

    def __init__(self, client: DataClient, config: ConsumerConfig, subscription: Subscription) -> None:
        self._client = client
        self._config = config
        self._subscription = subscription
        self._fetcher = Fetcher(client, config.fetch)
        self._group = None if config.group is None else _member(client, config.group)
        self._topics: set[str] = set()
        self._counts: dict[str, int] = {}
        self._looked_ms = 0
        self._committed_ms = 0
        self._committed: dict[TopicPartition, int] = {}
        self._joining: Task[list[TopicPartition]] | None = None
        """The join of a cooperative member, beside the polls."""
        self.rebalance_ms = 0
        """Time in which the group was joined."""

    async def start(self) -> None:
        """Find the topics, and the partitions unless a group assigns them. Raises: CommandFailed."""
        await self._client.refresh(())
        for topic in sorted(self._subscription.topics):
            await self._client.await_topic(topic, create=True, timeout_ms=TOPIC_TIMEOUT_MS)
        if self._subscription.patterns:
            await self._client.refresh(None)
        self._committed_ms = self._looked_ms = self._client.clock.monotonic_ms()
        self._find_topics()
        if self._group is None:
            found = self._unassigned()
            missing = self._subscription.partitions or frozenset()
            for topic, count in self._counts.items():
                for partition in missing:
                    if partition >= count:
                        raise CommandFailed(f"topic {topic} has {count} partition(s), not {partition}")
            states = [PartitionState(key, self._config.start) for key in found]
            await self._set_ends(states)
            self._fetcher.assign(states)

    @property
    def is_finished(self) -> bool:
        """Whether every assigned partition is consumed to its end."""
        is_assigned = self._group is None or not (self._group.needs_rejoin or self._joining)
        return is_assigned and all(state.is_finished for state in self._fetcher.states.values())

    @property
    def has_positions(self) -> bool:
        """Whether it is known for every partition which record comes first."""
        return all(state.position is not None for state in self._fetcher.states.values())

    @property
    def assignment(self) -> Collection[TopicPartition]:
        """The assigned partitions."""
        return self._fetcher.states.keys()

    async def poll(self, timeout_ms: int) -> Chunk | None:
        """The next records of a partition; None if there are none in this time, and at times before.

        While no broker answers it waits, if there is no end to reach. Raises: CommandFailed.
        """
        self._check_ends_can_be_reached()
        try:
            await self._look_after_assignment()
        except Unavailable as error:
            sys.stderr.write(f"odradek: warning: {error}\n")
            await self._client.back_off()
        return await self._fetcher.poll(timeout_ms)

    async def _look_after_assignment(self) -> None:
        """Find new partitions, join the group again, commit: what is due."""
        now_ms = self._client.clock.monotonic_ms()
        if now_ms - self._looked_ms >= self._config.metadata_max_age_ms:
            self._looked_ms = now_ms
            await self._look_for_partitions()
        if self._group is not None:
            if self._group.failure is not None:
                raise self._group.failure
            if self._group.config.is_cooperative:
                await self._cooperate(self._group)
            elif self._group.needs_rejoin:
                await self._rejoin(self._group)
                self.rebalance_ms += self._client.clock.monotonic_ms() - now_ms
            is_due = now_ms - self._committed_ms >= self._config.auto_commit_interval_ms
            if self._config.enable_auto_commit and is_due and not self._group.needs_rejoin and self._joining is None:
                await self.commit()

    def done(self, chunk: Chunk, next_offset: int | None = None) -> None:
        """The user has done with a chunk, or with its records before `next_offset`."""
        chunk.state.consumed = chunk.next_offset if next_offset is None else next_offset

    async def commit(self) -> None:
        """Commit what is done. Raises: CommandFailed; Unavailable if there is no coordinator at present."""
        if self._group is None:
            return
        self._committed_ms = self._client.clock.monotonic_ms()
        offsets = {
            key: state.consumed
            for key, state in self._fetcher.states.items()
            if state.consumed is not None and state.consumed != self._committed.get(key)
        }
        committed = await self._group.commit(offsets)
        self._committed |= committed
        if len(committed) < len(offsets):  # a topic may be gone: look at once
            self._looked_ms = self._committed_ms - self._config.metadata_max_age_ms

    async def close(self) -> None:
        """Commit, leave the group, stop fetching. Raises: CommandFailed if the commit fails."""
        try:
            if self._joining is not None:
                await cancel([self._joining])
            if self._config.enable_auto_commit and self._group is not None and not self._group.has_lost_partitions:
                await self.commit()
        finally:
            if self._group is not None:
                await self._group.leave()
            await self._fetcher.close()

    async def _rejoin(self, group: GroupMember) -> None:
        try:
            await self._join(group)
        except Unavailable:
            group.needs_rejoin = True  # from the beginning
            raise

    async def _join(self, group: GroupMember) -> None:
        if self._fetcher.states:
            if self._config.enable_auto_commit:
                await self.commit()
            self._fetcher.assign(())
        group.has_lost_partitions = False
        assigned = await group.join(self._topics, self._partition_counts)
        self._fetcher.assign(await self._begin(group, assigned))

    async def _begin(self, group: GroupMember, assigned: Collection[TopicPartition]) -> list[PartitionState]:
        """Partitions that begin where the group has committed. Raises: CommandFailed."""
        missing = {topic for topic, _ in assigned} - self._counts.keys()
        if missing:  # another member leads, and it knows more topics
            await self._client.refresh(self._counts.keys() | missing)
            self._find_topics()
        committed = await group.committed(assigned) if assigned else {}
        self._committed = {
            key: offset for key, offset in self._committed.items() if key in self._fetcher.states
        } | committed
        states = []
        for key in assigned:
            state = PartitionState(key, self._config.start, position=committed.get(key))
            state.consumed = state.position
            states.append(state)
        await self._set_ends(states)
        return states

    async def _cooperate(self, group: GroupMember) -> None:
        """Begin to join the group again when it rebalances, and take over the assignment when the join has ended."""
        if group.has_lost_partitions:
            group.has_lost_partitions = False
            sys.stderr.write("odradek: warning: the member has lost its place in the group, and its partitions\n")
            self._fetcher.assign(())  # without a commit: others may have them
        if self._joining is None and group.needs_rejoin:
            if self._config.enable_auto_commit:
                await self.commit()
            owned = tuple(self._fetcher.states)
            self._joining = spawn(self._join_beside_polls(group, owned))
        if self._joining is not None and self._joining.is_done:
            joining, self._joining = self._joining, None
            try:
                await self._take_over(group, joining.result())
            except Unavailable:
                group.needs_rejoin = True
                raise

    async def _join_beside_polls(self, group: GroupMember, owned: Collection[TopicPartition]) -> list[TopicPartition]:
        try:
            return await group.join(self._topics, self._partition_counts, owned)
        finally:
            self._fetcher.wake()

    async def _take_over(self, group: GroupMember, assigned: Collection[TopicPartition]) -> None:
        revoked = self._fetcher.states.keys() - set(assigned)
        if revoked:
            if self._config.enable_auto_commit:
                await self.commit()
            self._fetcher.remove(revoked)
            group.needs_rejoin = True  # so that others get them
        self._fetcher.add(await self._begin(group, [key for key in assigned if key not in self._fetcher.states]))

    async def _partition_counts(self, topics: Collection[str]) -> Mapping[str, int]:
        """For the leader of a group: also of topics that only other members subscribe to."""
        await self._client.refresh(topics)
        counts = {topic: self._client.cluster.partition_count(topic) for topic in topics}
        return {topic: count for topic, count in counts.items() if count}

    async def _look_for_partitions(self) -> None:
        """New topics of a pattern, and new partitions: they begin at their beginning, or the group rebalances."""
        await self._client.refresh(None if self._subscription.patterns else self._subscription.topics)
        before = dict(self._counts)
        self._find_topics()
        if self._counts == before:
            return
        if self._group is not None:
            is_changed = self._counts.keys() != before.keys()
            if self._group.is_leader or is_changed:
                self._group.needs_rejoin = True
            return
        states = [PartitionState(key, BEGINNING) for key in self._unassigned()]
        await self._set_ends(states)
        self._fetcher.add(states)

    def _find_topics(self) -> None:
        cluster = self._client.cluster
        known = [
            name
            for name, topic in cluster.topics.items()
            if topic.error_code == ErrorCode.NONE and (not topic.is_internal or name in self._subscription.topics)
        ]
        self._topics = self._subscription.matching(known) | self._subscription.topics
        self._counts = {name: cluster.partition_count(name) for name in self._topics if cluster.partition_count(name)}

    def _unassigned(self) -> list[TopicPartition]:
        chosen = self._subscription.partitions
        return [
            TopicPartition(topic, partition)
            for topic, count in sorted(self._counts.items())
            for partition in range(count)
            if (chosen is None or partition in chosen) and TopicPartition(topic, partition) not in self._fetcher.states
        ]

    async def _set_ends(self, states: list[PartitionState]) -> None:
        """Raises: CommandFailed if one cannot be found in default.api.timeout.ms. Kafka: KafkaConsumer.endOffsets."""
        until_ms = self._client.clock.monotonic_ms() + self._client.config.api_timeout_ms
        for choice in self._config.ends:
            wanted = {state.topic_partition: choice for state in states}
            found: dict[TopicPartition, int] = {}
            while wanted:
                found |= await find_offsets(self._client, wanted, read_committed=self._config.fetch.read_committed)
                wanted = {key: choice for key in wanted if key not in found}
                if wanted:
                    if self._client.clock.monotonic_ms() >= until_ms:
                        raise self._cannot_read(wanted)
                    await self._client.back_off()
                    await self._client.refresh({topic for topic, _ in wanted})
            for state in states:
                end = found[state.topic_partition]
                state.end = end if state.end is None else min(state.end, end)

    def _check_ends_can_be_reached(self) -> None:
        """Raises: CommandFailed when no partition is left but those that failed for default.api.timeout.ms."""
        if not self._config.ends:
            return
        late_ms = self._client.clock.monotonic_ms() - self._client.config.api_timeout_ms
        unfinished = [state for state in self._fetcher.states.values() if not state.is_finished]
        if unfinished and all(
            state.failing_since_ms is not None and state.failing_since_ms <= late_ms for state in unfinished
        ):
            raise self._cannot_read([state.topic_partition for state in unfinished])

    def _cannot_read(self, keys: Iterable[TopicPartition]) -> CommandFailed:
        cluster = self._client.cluster
        reasons = []
        for key in keys:
            leader = cluster.leader(key)
            if cluster.error(key.topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                reasons.append(f"{key}: its topic is deleted")
            elif leader is None:
                reasons.append(f"{key}: it has no leader")
            else:
                reasons.append(f"{key}: its leader, broker {leader}, gives no records")
        return CommandFailed(f"cannot read to the end: {'; '.join(reasons)}")


def _member(client: DataClient, config: GroupConfig) -> GroupMember:
    from odradek.broker.tools.data.consumer.group_member import GroupMember  # its messages are only for groups

    return GroupMember(client, config)
