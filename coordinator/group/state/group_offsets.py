"""The offsets of one group: committed, being appended to the log, or waiting for the end of a transaction.

`prepare_commit` records an offset as pending; then it is appended to `__consumer_offsets`. When the append is
committed, `commit_appended` makes it the group's offset, which OffsetFetch returns. Offsets sent in a transaction are
kept per producer. They become the group's offsets when the COMMIT marker is written to the same log, and are dropped
on ABORT. Until then they are unstable: an OffsetFetch with `require_stable` gets UNSTABLE_OFFSET_COMMIT (KIP-447).

Two commits of a partition may be in flight at once, one of them transactional. The one that is later *in the log* must
win, because the next coordinator loads that one after compaction. So each offset is kept with the base offset of its
batch, and an older one never replaces a newer one.

Where this differs: Kafka keeps only the latest pending commit of a partition. If a later commit fails, an earlier one
that is acknowledged afterwards is not visible until the group is loaded again. In a transaction, a refused commit
removes all that its producer has committed before in that transaction, even if the refused commit came from an earlier
epoch of the producer. Here each commit is pending by itself.

Kafka: GroupMetadata, OffsetAndMetadata, CommitRecordMetadataAndOffset.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.protocol.topic_partition import TopicPartition


class OffsetAndMetadata(NamedTuple):
    """A committed position. `expire_timestamp_ms` is set only if the request set a retention (versions 2-4)."""

    offset: int
    commit_timestamp_ms: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    metadata: str = ""
    expire_timestamp_ms: int | None = None


class CommittedOffset(NamedTuple):
    """A committed offset and the base offset of its batch in `__consumer_offsets`.

    Kafka: CommitRecordMetadataAndOffset.
    """

    record_offset: int
    value: OffsetAndMetadata

    def is_older_than(self, other: CommittedOffset) -> bool:
        return self.record_offset < other.record_offset


@dataclass(slots=True)
class _InTransaction:
    """The commits of one partition in the open transaction of one producer."""

    under_way: list[OffsetAndMetadata] = field(default_factory=list)
    appended: CommittedOffset | None = None
    """The one that is last in the log."""


class GroupOffsets:
    """Only stores; GroupMetadataManager writes the records."""

    __slots__ = ("_committed", "_pending", "_pending_transactional", "_received_plain", "_received_transactional")

    def __init__(self) -> None:
        # By topic and then by partition: deleting a topic looks it up in every group.
        self._committed: dict[str, dict[int, CommittedOffset]] = {}
        self._pending: dict[TopicPartition, list[OffsetAndMetadata]] = {}
        self._pending_transactional: dict[int, dict[TopicPartition, _InTransaction]] = {}
        self._received_plain = False
        self._received_transactional = False

    def __len__(self) -> int:
        return sum(map(len, self._committed.values()))

    def __iter__(self) -> Iterator[TopicPartition]:
        committed = self._committed.items()
        return iter([new_tuple(TopicPartition, (topic, index)) for topic, offsets in committed for index in offsets])

    def items(self) -> Iterator[tuple[TopicPartition, OffsetAndMetadata]]:
        """The committed offsets."""
        for topic, offsets in self._committed.items():
            for index, committed in offsets.items():
                yield TopicPartition(topic, index), committed.value

    def __bool__(self) -> bool:
        """Whether there is any offset, committed or pending, that would be lost with the group."""
        return bool(self._committed or self._pending or self._pending_transactional)

    def get(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        committed = self._committed.get(topic_partition.topic, {}).get(topic_partition.partition)
        return None if committed is None else committed.value

    def has_offset_or_pending_commit(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition has a committed offset or a pending commit."""
        return self.get(topic_partition) is not None or self.is_unstable(topic_partition)

    def load(
        self,
        committed: Mapping[TopicPartition, CommittedOffset],
        transactional: Mapping[int, Mapping[TopicPartition, CommittedOffset]],
    ) -> None:
        """Add the offsets read from the log. Kafka: GroupMetadata.initializeOffsets."""
        for topic_partition, offset in committed.items():
            self._set(topic_partition, offset)
        for producer_id, offsets in transactional.items():
            pending = self._pending_transactional.setdefault(producer_id, {})
            pending.update({key: _InTransaction(appended=offset) for key, offset in offsets.items()})

    def is_unstable(self, topic_partition: TopicPartition) -> bool:
        """Whether a commit of the partition is pending, plain or transactional.

        Kafka: GroupMetadata.hasPendingOffsetCommitsForTopicPartition.
        """
        return topic_partition in self._pending or any(
            topic_partition in offsets for offsets in self._pending_transactional.values()
        )

    # -- plain commits ---------------------------------------------------------------------------------------

    def prepare_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record the offsets as pending. Kafka: GroupMetadata.prepareOffsetCommit."""
        self._received_plain = True
        for topic_partition, offset in offsets.items():
            self._pending.setdefault(topic_partition, []).append(offset)

    def commit_appended(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], record_offset: int) -> None:
        """The append of these offsets is committed. A commit that is no longer pending was deleted meanwhile, and stays
        deleted.

        Kafka: GroupMetadata.onOffsetCommitAppend.
        """
        for topic_partition, offset in offsets.items():
            pending = self._pending.get(topic_partition)
            if pending is not None and len(pending) == 1 and pending[0] is offset:  # the frequent case
                del self._pending[topic_partition]
            elif not self.commit_failed(topic_partition, offset):
                continue
            self._set(topic_partition, new_tuple(CommittedOffset, (record_offset, offset)))

    def _set(self, topic_partition: TopicPartition, appended: CommittedOffset) -> None:
        """Make it the group's offset, unless the current one is later in the log."""
        offsets = self._committed.setdefault(topic_partition.topic, {})
        current = offsets.get(topic_partition.partition)
        if current is None or current.record_offset < appended.record_offset:
            offsets[topic_partition.partition] = appended

    def commit_failed(self, topic_partition: TopicPartition, offset: OffsetAndMetadata) -> bool:
        """Drop the pending commit; whether it was pending. Kafka: GroupMetadata.failPendingOffsetWrite."""
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
        """Record the offsets as pending in the transaction. Kafka: GroupMetadata.prepareTxnOffsetCommit."""
        self._received_transactional = True
        pending = self._pending_transactional.setdefault(producer_id, {})
        for topic_partition, offset in offsets.items():
            pending.setdefault(topic_partition, _InTransaction()).under_way.append(offset)

    def transactional_commit_appended(
        self, producer_id: int, topic_partition: TopicPartition, appended: CommittedOffset
    ) -> None:
        """The append is committed. If the commit is no longer pending, the marker came first and the commit is dropped.

        Kafka: GroupMetadata.onTxnOffsetCommitAppend.
        """
        pending = self._pending_transactional.get(producer_id, {}).get(topic_partition)
        if pending is None or appended.value not in pending.under_way:
            return
        pending.under_way.remove(appended.value)
        if pending.appended is None or pending.appended.is_older_than(appended):
            pending.appended = appended

    def transactional_commit_failed(
        self, producer_id: int, topic_partition: TopicPartition, offset: OffsetAndMetadata
    ) -> None:
        """Drop this commit; offsets appended before stay in the transaction.

        Kafka: GroupMetadata.failPendingTxnOffsetCommit.
        """
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
        """The marker is in the log: the producer's offsets become the group's, or are dropped.

        Kafka: GroupMetadata.completePendingTxnOffsetCommit.
        """
        pending = self._pending_transactional.pop(producer_id, {})
        if not committed:
            return
        for topic_partition, offsets in pending.items():
            # A commit whose append is not committed when the marker is written was never part of the transaction.
            if offsets.appended is not None:
                self._set(topic_partition, offsets.appended)

    @property
    def producers(self) -> list[int]:
        """Ids of producers with an open transaction that has offsets of this group."""
        return list(self._pending_transactional)

    def has_pending_from(self, producer_id: int) -> bool:
        return producer_id in self._pending_transactional

    @property
    def mixes_plain_and_transactional(self) -> bool:
        """Whether both kinds of commit came in one generation: allowed, but most likely an error of the application.

        Kafka: GroupMetadata.hasReceivedConsistentOffsetCommits.
        """
        return self._received_plain and self._received_transactional

    def forget_commit_sources(self) -> None:
        self._received_plain = self._received_transactional = False

    # -- removal ---------------------------------------------------------------------------------------------

    def remove(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Drop the partitions' offsets, pending ones too. Returns the partitions that need a tombstone, those with a
        committed offset.
        """
        removed = []
        for topic_partition in topic_partitions:
            self._pending.pop(topic_partition, None)
            for pending in self._pending_transactional.values():
                pending.pop(topic_partition, None)
            if self._take(topic_partition):
                removed.append(topic_partition)
        return removed

    def may_lose(self, topics: Set[str]) -> bool:
        """Whether `remove_topics` may remove something, or leave a group that has nothing committed.

        It is asked of all groups at once, of which there may be a million: a no makes no container for an offset.
        """
        if self._committed and not self._pending and not self._pending_transactional:
            return not self._committed.keys().isdisjoint(topics)
        return True

    def remove_topics(self, partitions: Mapping[str, Set[int]]) -> Mapping[str, Collection[int]]:
        """The same for the partitions of deleted topics, and the result by topic.

        This is done for many groups at once. So the offsets of a topic that is deleted with all its partitions are
        handed over as they are, to be freed later.
        """
        removed: dict[str, Collection[int]] = {}
        for topic in partitions.keys() & self._committed.keys():
            offsets, deleted = self._committed[topic], partitions[topic]
            if offsets.keys() <= deleted:
                removed[topic] = self._committed.pop(topic)
            elif indexes := offsets.keys() & deleted:
                removed[topic] = indexes
                for index in indexes:
                    del offsets[index]
        under_way = {*self._pending, *(key for pending in self._pending_transactional.values() for key in pending)}
        self.remove(key for key in under_way if key.partition in partitions.get(key.topic, ()))
        return removed

    def remove_all(self) -> list[TopicPartition]:
        return self.remove(list(self))

    def remove_expired(self, policy: ExpiryPolicy, now_ms: int, retention_ms: int) -> list[TopicPartition]:
        """Drop the offsets whose retention is over, except those with a pending commit."""
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


class ExpiryPolicy(NamedTuple):
    """The time from which an offset's retention counts, and the topics whose offsets do not expire."""

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

    - an Empty group: all, counted from when it became Empty (from the commit if the log does not have that time);
    - a Stable consumer group: those of topics that no member subscribes to, counted from the commit;
    - a group that never had members (no protocol type): all, counted from the commit;
    - any other group: none.

    Kafka: GroupMetadata.removeExpiredOffsets.
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
