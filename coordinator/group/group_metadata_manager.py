"""The groups that this broker coordinates: the cache in memory and its log.

An assignment or a committed offset is appended to the group's partition of `__consumer_offsets` first, and is valid
only when the append is committed. A removal is made in memory first; tombstones follow and no request waits for them,
since the next sweep repeats lost ones.

When this broker becomes leader of a partition, its groups are loaded from the log. When it stops being the leader, they
are dropped, and become Dead, so that operations in flight stop. A dropped group is not written to the log: the same
group may have been loaded again. All dropped groups are Dead before a load reads the log.

Kafka: GroupMetadataManager.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.loading import Replay, loaded_groups
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import CommittedOffset, OffsetAndMetadata, expiry_policy
from odradek.coordinator.group.state.group_states import GroupEvent, GroupState
from odradek.coordinator.group.state.records import (
    OffsetRecords,
    group_metadata_key,
    group_metadata_value,
    offset_commit_key,
)
from odradek.coordinator.group.state.responses import GROUP_APPEND_ERRORS, OFFSET_APPEND_ERRORS
from odradek.coordinator.group.tombstones import append_tombstones
from odradek.coordinator.partitioning import partition_for
from odradek.coordinator.ports import OFFSETS_SEQUENCE, CoordinatorLog, TransactionalProducer
from odradek.coordinator.runtime import PartitionOwnership
from odradek.protocol.errors import ErrorCode
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import Clock
from odradek.timer.sliced_work import SlicedWork, Steps
from odradek.timer.system_timer import SystemTimer

if TYPE_CHECKING:
    from odradek.coordinator.group.observer import GroupObserver

_log = logging.getLogger(__name__)

TOPIC = "__consumer_offsets"

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

TOMBSTONES_A_STEP = 100
"""One step: half a millisecond of work."""

OFFSETS_A_STEP = 16
"""One step of a commit or of a question for offsets: a tenth of a millisecond of work."""

_E = ErrorCode


def _is_without_use(group: GroupMetadata) -> bool:
    return group.state is GroupState.EMPTY and not group.offsets


class GroupMetadataManager:
    """Changes groups in the log and in memory. `on_loaded` is called with each loaded group, `on_gone` with each group
    that was removed or unloaded.
    """

    def __init__(
        self,
        *,
        config: GroupConfig,
        log: CoordinatorLog,
        clock: Clock,
        timer: SystemTimer,
        on_loaded: Callable[[GroupMetadata], None],
        on_gone: Callable[[GroupMetadata], None],
    ) -> None:
        self._config = config
        self._records = log
        self._clock = clock
        self._loads = SlicedWork(timer, clock)
        self._removals = SlicedWork(timer, clock)
        # Separate from sweeps: a client is told that a group is deleted, and the tombstones should be written by then.
        self._deletions = SlicedWork(timer, clock)
        # Separate from the others: clients wait for answers of groups that have moved, and not for a load or a sweep.
        self._unloads = SlicedWork(timer, clock)
        self._unloaded: deque[GroupMetadata] = deque()
        self._on_loaded = on_loaded
        self._on_gone = on_gone
        self.is_active = False
        self.expired_offsets = 0
        """Offsets that were removed because of their age, since the start."""
        self.offset_commits = 0
        """Commits of one or more offsets that were written, since the start."""
        self.observer: GroupObserver | None = None
        self._groups: dict[str, GroupMetadata] = {}
        self._groups_of_partition: dict[int, dict[str, GroupMetadata]] = {}
        # Groups with offsets in the open transaction of a producer id. The marker names only the producer.
        # Kafka: GroupMetadataManager.openGroupsForProducer.
        self._groups_of_producer: dict[int, set[str]] = {}
        # (producer id, whether committed) of markers that were written while the partition was loading.
        self._completed_while_loading: dict[int, list[tuple[int, bool]]] = {}
        self.ownership = PartitionOwnership(
            TOPIC, self._loads, load=self._load, on_unload=self._unload, on_loaded=self._loaded
        )

    # -- partitions ------------------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        return partition_for(group_id, self._records.partition_count)

    def is_local(self, group_id: str) -> bool:
        return self.ownership.is_owned(self.partition_for(group_id))

    def is_loading(self, group_id: str) -> bool:
        return self.ownership.is_loading(self.partition_for(group_id))

    # -- the cache -------------------------------------------------------------------------------------------

    @property
    def groups(self) -> Iterable[GroupMetadata]:
        return self._groups.values()

    def get(self, group_id: str) -> GroupMetadata | None:
        return self._groups.get(group_id)

    def get_or_create(self, group_id: str) -> GroupMetadata:
        group = self._groups.get(group_id)
        if group is None:
            group = GroupMetadata(group_id, self._clock)
            self._add(group)
        return group

    def _add(self, group: GroupMetadata) -> None:
        self._groups[group.group_id] = group
        self._groups_of_partition.setdefault(self.partition_for(group.group_id), {})[group.group_id] = group

    def _drop(self, group: GroupMetadata) -> None:
        del self._groups[group.group_id]
        partition = self.partition_for(group.group_id)
        neighbours = self._groups_of_partition[partition]
        del neighbours[group.group_id]
        if not neighbours:
            del self._groups_of_partition[partition]

    def _changed(self, group: GroupMetadata) -> None:
        if self.observer is not None:
            self.observer.changed(group)

    # -- writing ---------------------------------------------------------------------------------------------

    def _may_write(self, group: GroupMetadata, partition: int) -> bool:
        """Whether there is a log, and the group was not dropped."""
        return self._groups.get(group.group_id) is group and self._records.has_log(partition)

    def store_group(
        self, group: GroupMetadata, assignment: dict[str, bytes], done: Callable[[ErrorCode], None]
    ) -> None:
        """Append the group as it is now, with the assignment; `done` gets the error for clients."""
        partition = self.partition_for(group.group_id)
        if not self._may_write(group, partition):
            done(ErrorCode.NOT_COORDINATOR)
            return
        value = group_metadata_value(
            protocol_type=group.protocol_type,
            generation_id=group.generation_id,
            protocol_name=group.protocol_name,
            leader_id=group.leader_id,
            since_ms=group.lifecycle.since_ms,
            members=group.members,
            assignment=assignment,
            metadata_version=self._config.metadata_version,
        )
        record = SimpleRecord(self._clock.time_ms(), group_metadata_key(group.group_id), value)

        def appended(error: ErrorCode, _: int) -> None:
            if error == ErrorCode.NONE:
                done(error)
                self._changed(group)
                return
            answer = GROUP_APPEND_ERRORS.get(error, error)
            _log.warning(
                "Appending metadata of group %s failed: %s. The clients get %s", group.group_id, error.name, answer.name
            )
            done(answer)

        self._records.append(partition, [record], appended)

    def store_offsets(
        self,
        group: GroupMetadata,
        offsets: Offsets,
        done: Callable[[dict[TopicPartition, ErrorCode]], None],
        producer: TransactionalProducer | None = None,
        *,
        records: Sequence[SimpleRecord],
    ) -> None:
        """Append offsets and make them the group's when the append is committed. `records`: the encoded offsets from
        `offset_records`. Too long metadata is an error of its own partition only.
        """
        too_long = {key for key, offset in offsets.items() if offset.metadata and not self.fits(offset.metadata)}
        accepted = {key: offset for key, offset in offsets.items() if key not in too_long} if too_long else offsets

        def finish(error: ErrorCode) -> None:
            outcome = dict.fromkeys(offsets, error)
            outcome.update(dict.fromkeys(too_long, _E.OFFSET_METADATA_TOO_LARGE))
            done(outcome)

        partition = self.partition_for(group.group_id)
        if not accepted:
            finish(_E.NONE)
            return
        if not self._may_write(group, partition):
            # As in Kafka, every partition of the request gets this error, also those with too long metadata.
            done(dict.fromkeys(offsets, _E.NOT_COORDINATOR))
            return
        self._prepare(group, accepted, producer)

        def appended(error: ErrorCode, base_offset: int) -> None:
            if not group.is_dead:
                if error == _E.NONE:
                    self._offsets_appended(group, accepted, base_offset, producer)
                else:
                    self._offsets_failed(group, accepted, producer)
            if error == _E.NONE:
                self.offset_commits += 1
            else:
                _log.debug("Offset commit of group %s failed: %s", group.group_id, error.name)
            finish(OFFSET_APPEND_ERRORS.get(error, error))

        self._records.append(partition, records, appended, producer=producer, base_sequence=OFFSETS_SEQUENCE)

    def offset_records(self, group_id: str, offsets: Offsets) -> Generator[None, None, list[SimpleRecord]]:
        """The records of the offsets whose metadata is not too long, in steps.

        Kafka: GroupMetadataManager.generateOffsetRecords.
        """
        now_ms, encoded = self._clock.time_ms(), OffsetRecords(group_id, self._config.metadata_version)
        records: list[SimpleRecord] = []
        for number, (topic_partition, offset) in enumerate(offsets.items(), 1):
            if not offset.metadata or self.fits(offset.metadata):
                key, value = encoded.key_and_value(topic_partition, offset)
                records.append(new_tuple(SimpleRecord, (now_ms, key, value, ())))
            if number % OFFSETS_A_STEP == 0:
                yield
        return records

    def _prepare(self, group: GroupMetadata, offsets: Offsets, producer: TransactionalProducer | None) -> None:
        if producer is None:
            group.offsets.prepare_commit(offsets)
        else:
            self._groups_of_producer.setdefault(producer.producer_id, set()).add(group.group_id)
            group.offsets.prepare_transactional_commit(producer.producer_id, offsets)
        if group.offsets.mixes_plain_and_transactional:
            _log.warning(
                "group: %s with leader: %s has received offset commits from consumers as well as transactional "
                "producers. Mixing both types of offset commits will generally result in surprises and should be "
                "avoided.",
                group.group_id,
                group.leader_id,
            )

    def _offsets_appended(
        self, group: GroupMetadata, offsets: Offsets, base_offset: int, producer: TransactionalProducer | None
    ) -> None:
        if producer is None:
            group.offsets.commit_appended(offsets, base_offset)
        else:
            for topic_partition, offset in offsets.items():
                committed = CommittedOffset(base_offset, offset)
                group.offsets.transactional_commit_appended(producer.producer_id, topic_partition, committed)
        self._changed(group)

    def _offsets_failed(self, group: GroupMetadata, offsets: Offsets, producer: TransactionalProducer | None) -> None:
        for topic_partition, offset in offsets.items():
            if producer is None:
                group.offsets.commit_failed(topic_partition, offset)
            else:
                group.offsets.transactional_commit_failed(producer.producer_id, topic_partition, offset)
        if producer is not None and not group.offsets.has_pending_from(producer.producer_id):
            self._forget_producer_of(producer.producer_id, group.group_id)

    def fits(self, metadata: str) -> bool:
        """Whether the metadata is within `offset.metadata.max.bytes`, counted in UTF-16 units as Kafka does.

        Kafka: GroupMetadataManager.validateOffsetMetadataLength.
        """
        length = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
        return length <= self._config.offset_metadata_max_bytes

    # -- transactions ----------------------------------------------------------------------------------------

    def complete_transaction(self, producer_id: int, partitions: Iterable[int], *, committed: bool) -> None:
        """A marker of the producer was written to these partitions. Kafka: GroupMetadataManager.handleTxnCompletion.

        For a partition that is being loaded the marker is applied afterwards: the load may have read the log before
        the marker was written.
        """
        completed = set()
        for partition in partitions:
            if self.ownership.is_loading(partition):
                self._completed_while_loading.setdefault(partition, []).append((producer_id, committed))
            else:
                completed.add(partition)
        for group_id in list(self._groups_of_producer.get(producer_id, ())):
            if self.partition_for(group_id) not in completed:
                continue
            group = self._groups.get(group_id)
            if group is not None and not group.is_dead:
                group.offsets.complete_transaction(producer_id, committed=committed)
                self._changed(group)
            self._forget_producer_of(producer_id, group_id)

    def _forget_producer_of(self, producer_id: int, group_id: str) -> None:
        groups = self._groups_of_producer.get(producer_id)
        if groups is not None:
            groups.discard(group_id)
            if not groups:
                del self._groups_of_producer[producer_id]

    # -- removing --------------------------------------------------------------------------------------------

    def remove_offsets(
        self, group: GroupMetadata, removed: Sequence[TopicPartition], queue: SlicedWork | None = None
    ) -> int:
        """Write tombstones for offsets removed from the group, and for a group that is Dead or Empty without offsets.

        `queue`: by default that of deletions. Returns the number of removed offsets.
        """
        if not self._records.has_log(self.partition_for(group.group_id)):
            self._set_dead_if_empty(group)
            return 0
        (queue or self._deletions).submit(self._tombstone_steps(group, removed, self._epoch_of(group)))
        return len(removed)

    def forget_partitions(self, deleted: Iterable[TopicPartition]) -> None:
        """Topics were deleted: remove the offsets committed for them, and every Empty group that has no offsets.

        The offsets are removed from memory when this returns, because the topics may be created again at once, and what
        is committed for them then must stay. Tombstones follow in slices.
        """
        partitions: dict[str, set[int]] = {}
        for topic, index in deleted:
            partitions.setdefault(topic, set()).add(index)
        topics = partitions.keys()
        affected = deque(
            (group, removed, self._epoch_of(group))
            for group in [group for group in self._groups.values() if group.offsets.may_lose(topics)]
            if (removed := group.offsets.remove_topics(partitions)) or _is_without_use(group)
        )
        _log.info(
            "Removed %d offsets of %d deleted topics",
            sum(len(indexes) for _, removed, _ in affected for indexes in removed.values()),
            len(partitions),
        )
        self._deletions.submit(self._tombstones_of_groups(affected))

    def _tombstones_of_groups(self, affected: deque[tuple[GroupMetadata, Mapping[str, Collection[int]], int]]) -> Steps:
        while affected:
            group, by_topic, epoch = affected.popleft()  # which frees the offsets of one group a step
            removed = [TopicPartition(topic, index) for topic, indexes in by_topic.items() for index in indexes]
            yield from self._tombstone_steps(group, removed, epoch)

    def _epoch_of(self, group: GroupMetadata) -> int:
        return self.ownership.epoch(self.partition_for(group.group_id))

    def _tombstone_steps(self, group: GroupMetadata, removed: Sequence[TopicPartition], epoch: int) -> Steps:
        """Drop the group if it is Dead or empty, and write tombstones.

        No tombstone is written for an offset that has been committed again since, nor after the leader epoch of the
        partition has changed from `epoch`.
        """
        partition = self.partition_for(group.group_id)
        if self._epoch_of(group) != epoch:
            return
        self._set_dead_if_empty(group)
        is_gone = group.is_dead and self._groups.get(group.group_id) is group
        if is_gone:
            self._drop(group)
            self._on_gone(group)
        self._changed(group)
        # A group of generation 0 has no metadata record: it only stored offsets.
        was_written = is_gone and group.generation_id > 0
        for start in range(0, len(removed) or was_written, TOMBSTONES_A_STEP):
            if self._epoch_of(group) != epoch or not self._records.has_log(partition):
                return
            current = self._groups.get(group.group_id)
            keys = [
                offset_commit_key(group.group_id, key)
                for key in removed[start : start + TOMBSTONES_A_STEP]
                if current is None or not current.offsets.has_offset_or_pending_commit(key)
            ]
            is_last = start + TOMBSTONES_A_STEP >= len(removed)
            if is_last and was_written and (current is None or not current.generation_id):
                keys.append(group_metadata_key(group.group_id))
            append_tombstones(self._records, group.group_id, partition, keys, self._clock.time_ms())
            yield None

    @staticmethod
    def _set_dead_if_empty(group: GroupMetadata) -> None:
        if _is_without_use(group):
            _log.info("Group %s is dead in generation %d", group.group_id, group.generation_id)
            group.lifecycle.fire(GroupEvent.REMOVED)

    def delete(self, group: GroupMetadata) -> None:
        """Remove the group with all its offsets. It must have no members."""
        group.lifecycle.fire(GroupEvent.REMOVED)
        count = self.remove_offsets(group, group.offsets.remove_all())
        _log.info("Deleted group %s with %d offsets", group.group_id, count)

    def expire_offsets(self) -> None:
        """Start a sweep over all groups, in slices. Kafka: GroupMetadataManager.cleanupGroupMetadata."""
        self._removals.submit(self._expiration_steps())

    def _expiration_steps(self) -> Steps:
        now_ms = self._clock.time_ms()
        count = 0
        for group in list(self._groups.values()):
            # The group may have been unloaded between two slices of the sweep.
            if self._groups.get(group.group_id) is group and self.is_local(group.group_id):
                count += self._expire(group, now_ms)
            yield None
        if count:
            _log.info("Removed %d expired offsets in %d milliseconds", count, self._clock.time_ms() - now_ms)

    def _expire(self, group: GroupMetadata, now_ms: int) -> int:
        policy = expiry_policy(
            state=group.state,
            since_ms=group.lifecycle.since_ms,
            protocol_type=group.protocol_type,
            is_consumer_group=group.is_consumer_group,
            subscribed_topics=group.subscribed_topics,
        )
        expired = (
            [] if policy is None else group.offsets.remove_expired(policy, now_ms, self._config.offsets_retention_ms)
        )
        self.expired_offsets += len(expired)
        return self.remove_offsets(group, expired, self._removals)

    # -- loading and unloading -------------------------------------------------------------------------------

    def _load(self, partition: int) -> Steps:
        """Kafka: GroupMetadataManager.loadGroupsAndOffsets."""
        yield from self._set_dead_steps()
        replay = Replay()
        yield from replay.run(self._records.read_all(partition))
        for group in loaded_groups(replay, self._clock):
            if group is not None:
                self._install(group)
            yield None

    def _install(self, group: GroupMetadata) -> None:
        current = self._groups.get(group.group_id)
        if current is not None:
            _log.error(
                "Ignoring the loaded group %s: it is already in memory with generation %d",
                group.group_id,
                current.generation_id,
            )
            return
        self._add(group)
        for producer_id in group.offsets.producers:
            self._groups_of_producer.setdefault(producer_id, set()).add(group.group_id)
        self._on_loaded(group)

    def _loaded(self, partition: int) -> None:
        for producer_id, committed in self._completed_while_loading.pop(partition, ()):
            self.complete_transaction(producer_id, [partition], committed=committed)

    def _unload(self, partition: int) -> None:
        """Kafka: GroupMetadataManager.removeGroupsAndOffsets."""
        self._completed_while_loading.pop(partition, None)
        for group in self._groups_of_partition.pop(partition, {}).values():
            del self._groups[group.group_id]
            for producer_id in group.offsets.producers:
                self._forget_producer_of(producer_id, group.group_id)
            self._unloaded.append(group)
        self._unloads.submit(self._set_dead_steps())

    def _set_dead_steps(self) -> Steps:
        while self._unloaded:
            group = self._unloaded.popleft()
            group.lifecycle.fire(GroupEvent.REMOVED)
            self._on_gone(group)
            self._changed(group)
            yield None
