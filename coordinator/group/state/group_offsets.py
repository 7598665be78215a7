"""The offsets of one group: committed, on their way into the log, or waiting for a transaction.

An offset goes through three places. `prepare_commit` notes it as pending, then it is appended to
`__consumer_offsets`; when the append is committed `commit_appended` makes it the group's offset, which is what
OffsetFetch returns. Offsets sent within a transaction are kept per producer, and become the group's when the COMMIT
marker is written to the same log (they vanish on ABORT). Meanwhile they count as unstable: a fetch that requires
stability is told to retry (KIP-447).

Two commits of a partition may be under way at once, one of them transactional; the one that is later *in the log* has
to win, because that is the one the next coordinator will load after compaction. So each offset is kept with the base
offset of the batch it was written in, and an older one never replaces a newer one.

Kafka keeps the latest pending commit of a partition only, so that one which is acknowledged after a later one has
failed does not show until the group is loaded again. Here each commit is pending for itself. So it is in transactions,
where Kafka loses more: a commit that is refused takes with it what its producer has committed before in the same
transaction, even if the one refused came from an earlier life of the producer.

Kafka: the offsets half of GroupMetadata, OffsetAndMetadata and CommitRecordMetadataAndOffset.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAndMetadata:
    """A committed position. `expire_timestamp_ms` is set only if the client asked for a retention of its own
    (versions 2-4).
    """

    offset: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """An offset and where in the log it stands."""

    record_offset: int
    value: OffsetAndMetadata

    def is_older_than(self, other: CommittedOffset) -> bool:
        return self.record_offset < other.record_offset


@dataclass(slots=True)
class _InTransaction:
    """The commits of one partition by one producer whose transaction is open."""

    under_way: list[OffsetAndMetadata] = field(default_factory=list)
    appended: CommittedOffset | None = None
    """The last of them in the log."""


class GroupOffsets:
    """Bookkeeping only; the records are written by GroupMetadataManager."""

    __slots__ = ("_committed", "_pending", "_pending_transactional", "_received_plain", "_received_transactional")

    def __init__(self) -> None:
        # By topic, and not by partition: topics are deleted, and every group is asked for their offsets then.
        self._committed: dict[str, dict[int, CommittedOffset]] = {}
        self._pending: dict[TopicPartition, list[OffsetAndMetadata]] = {}
        self._pending_transactional: dict[int, dict[TopicPartition, _InTransaction]] = {}
        self._received_plain = False
        self._received_transactional = False

    def __len__(self) -> int:
        return sum(map(len, self._committed.values()))

    def __iter__(self) -> Iterator[TopicPartition]:
        return (TopicPartition(topic, index) for topic, offsets in self._committed.items() for index in offsets)

    def __bool__(self) -> bool:
        """Whether there is anything at all that would be lost with the group."""
        return bool(self._committed or self._pending or self._pending_transactional)

    def get(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self._committed.get(topic_partition.topic, {}).get(topic_partition.partition)
        return None if committed is None else committed.value

    def knows(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition has an offset, or may get one."""
        return self.get(topic_partition) is not None or self.is_unstable(topic_partition)

    def load(
        self,
        committed: Mapping[TopicPartition, CommittedOffset],
        transactional: Mapping[int, Mapping[TopicPartition, CommittedOffset]],
    ) -> None:
        """What the log says, before the group is served."""
        for topic_partition, offset in committed.items():
            self._set(topic_partition, offset)
        for producer_id, offsets in transactional.items():
            pending = self._pending_transactional.setdefault(producer_id, {})
            pending.update({key: _InTransaction(appended=offset) for key, offset in offsets.items()})

    def is_unstable(self, topic_partition: TopicPartition) -> bool:
        """Whether a commit of the partition is under way, plain or transactional."""
        return topic_partition in self._pending or any(
            topic_partition in offsets for offsets in self._pending_transactional.values()
        )

    # -- plain commits ---------------------------------------------------------------------------------------

    def prepare_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._received_plain = True
        for topic_partition, offset in offsets.items():
            self._pending.setdefault(topic_partition, []).append(offset)

    def commit_appended(self, topic_partition: TopicPartition, appended: CommittedOffset) -> None:
        """The append is committed. A commit that is not pending any more was deleted meanwhile, and stays deleted."""
        if not self.commit_failed(topic_partition, appended.value):
            return
        self._set(topic_partition, appended)

    def _set(self, topic_partition: TopicPartition, appended: CommittedOffset) -> None:
        """Make it the group's offset, unless the one it has stands further on in the log."""
        offsets = self._committed.setdefault(topic_partition.topic, {})
        current = offsets.get(topic_partition.partition)
        if current is None or current.is_older_than(appended):
            offsets[topic_partition.partition] = appended

    def commit_failed(self, topic_partition: TopicPartition, offset: OffsetAndMetadata) -> bool:
        """Take the commit back; whether it was pending."""
        pending = self._pending.get(topic_partition, [])
        if offset not in pending:
            return False
        pending.remove(offset)
        if not pending:
            del self._pending[topic_partition]
        return True

    # -- transactional commits -------------------------------------------------------------------------------

    def prepare_transactional_commit(
        self, producer_id: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        self._received_transactional = True
        pending = self._pending_transactional.setdefault(producer_id, {})
        for topic_partition, offset in offsets.items():
            pending.setdefault(topic_partition, _InTransaction()).under_way.append(offset)

    def transactional_commit_appended(
        self, producer_id: int, topic_partition: TopicPartition, appended: CommittedOffset
    ) -> None:
        """The append is committed. If it is not pending any more, the marker came first, and it does not count."""
        pending = self._pending_transactional.get(producer_id, {}).get(topic_partition)
        if pending is None or appended.value not in pending.under_way:
            return
        pending.under_way.remove(appended.value)
        if pending.appended is None or pending.appended.is_older_than(appended):
            pending.appended = appended

    def transactional_commit_failed(
        self, producer_id: int, topic_partition: TopicPartition, offset: OffsetAndMetadata
    ) -> None:
        """Take this commit back; what was appended before stays in the transaction."""
        offsets = self._pending_transactional.get(producer_id, {})
        pending = offsets.get(topic_partition)
        if pending is None or offset not in pending.under_way:
            return
        pending.under_way.remove(offset)
        if not pending.under_way and pending.appended is None:
            del offsets[topic_partition]
            if not offsets:
                del self._pending_transactional[producer_id]

    def complete_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker is in the log: the producer's offsets become the group's, or are dropped."""
        pending = self._pending_transactional.pop(producer_id, {})
        if not committed:
            return
        for topic_partition, offsets in pending.items():
            # A commit whose append is still open when the marker comes was never part of the transaction.
            if offsets.appended is not None:
                self._set(topic_partition, offsets.appended)

    @property
    def producers(self) -> list[int]:
        """Producers with an open transaction that has offsets of this group."""
        return list(self._pending_transactional)

    def has_pending_from(self, producer_id: int) -> bool:
        return producer_id in self._pending_transactional

    @property
    def mixes_plain_and_transactional(self) -> bool:
        """Both kinds of commit in one generation: legal, and nearly always a mistake of the application."""
        return self._received_plain and self._received_transactional

    def forget_commit_sources(self) -> None:
        self._received_plain = self._received_transactional = False

    # -- removal ---------------------------------------------------------------------------------------------

    def remove(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Drop the partitions, pending ones too; returns those that had a committed offset (they need a tombstone)."""
        removed = []
        for topic_partition in topic_partitions:
            self._pending.pop(topic_partition, None)
            for pending in self._pending_transactional.values():
                pending.pop(topic_partition, None)
            if self._take(topic_partition):
                removed.append(topic_partition)
        return removed

    def remove_topics(self, partitions: Mapping[str, Collection[int]]) -> list[TopicPartition]:
        """The same for partitions of topics that are deleted, at no cost for topics without an offset here."""
        removed = [
            TopicPartition(topic, index)
            for topic in partitions.keys() & self._committed.keys()
            for index in self._committed[topic]
            if index in partitions[topic]
        ]
        for topic_partition in removed:
            self._take(topic_partition)
        under_way = {*self._pending, *(key for pending in self._pending_transactional.values() for key in pending)}
        self.remove(key for key in under_way if key.partition in partitions.get(key.topic, ()))
        return removed

    def remove_all(self) -> list[TopicPartition]:
        return self.remove(list(self))

    def remove_expired(self, policy: ExpiryPolicy, now_ms: int, retention_ms: int) -> list[TopicPartition]:
        """Drop what has outlived its retention and is not being committed right now."""
        expired = [
            topic_partition
            for topic, offsets in self._committed.items()
            if topic not in policy.subscribed_topics
            for index, committed in offsets.items()
            if (topic_partition := TopicPartition(topic, index)) not in self._pending
            and _has_expired(committed.value, policy.base_timestamp, now_ms, retention_ms)
        ]
        for topic_partition in expired:
            self._take(topic_partition)
        return expired

    def _take(self, topic_partition: TopicPartition) -> bool:
        """Drop the partition's committed offset; whether it had one."""
        topic, index = topic_partition
        offsets = self._committed.get(topic, {})
        if offsets.pop(index, None) is None:
            return False
        if not offsets:
            del self._committed[topic]
        return True


def _has_expired(
    offset: OffsetAndMetadata, base_timestamp: Callable[[OffsetAndMetadata], int], now_ms: int, retention_ms: int
) -> bool:
    if offset.expire_timestamp_ms is not None:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - base_timestamp(offset) >= retention_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPolicy:
    """From when the retention of an offset runs, and which topics it does not run for."""

    base_timestamp: Callable[[OffsetAndMetadata], int]
    subscribed_topics: Collection[str] = ()


def expiry_policy(
    *,
    state: GroupState,
    since_ms: int | None,
    protocol_type: str | None,
    is_consumer_group: bool,
    subscribed_topics: frozenset[str] | None,
) -> ExpiryPolicy | None:
    """Which offsets of a group may expire (KIP-211, KIP-496); None: none of them.

    - a group nobody is in: all, counted from when it became empty (from the commit if the log does not say when);
    - a stable consumer group: those of topics nobody in it is subscribed to any more, from the commit;
    - a group that never had members (no protocol type): all, from the commit;
    - any other group is in use.
    """
    if protocol_type is None:
        return ExpiryPolicy(base_timestamp=_commit_timestamp)
    if state is GroupState.EMPTY:
        if since_ms is None:
            return ExpiryPolicy(base_timestamp=_commit_timestamp)
        return ExpiryPolicy(base_timestamp=lambda _: since_ms)
    if state is GroupState.STABLE and is_consumer_group and subscribed_topics is not None:
        return ExpiryPolicy(base_timestamp=_commit_timestamp, subscribed_topics=subscribed_topics)
    return None


def _commit_timestamp(offset: OffsetAndMetadata) -> int:
    return offset.commit_timestamp_ms
