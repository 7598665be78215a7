"""Loads the groups of a partition of `__consumer_offsets`.

`Replay` reads the log once from the start and keeps the last value of each key as bytes; `loaded_groups` then decodes
these. Values that a later record replaces are never decoded; in a log that is not compacted yet, most are.

Offsets of a transaction are kept per producer until its marker: COMMIT merges them, ABORT drops them. Those of a
transaction that is open at the end of the log are loaded as pending. A committed offset never replaces one that is
later in the log (see group_offsets.py).

A value that cannot be decoded is logged and ignored; Kafka stops loading the whole partition. A group with metadata
becomes Stable if it has members, else Empty; offsets without metadata make an Empty group.

Kafka: GroupMetadataManager.doLoadGroupsAndOffsets, GroupMetadataManager.loadGroup.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import CommittedOffset
from odradek.coordinator.group.state.group_states import GroupState
from odradek.coordinator.group.state.records import (
    is_group_key,
    is_offset_key,
    member_from_record,
    normalized_key,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
)
from odradek.coordinator.runtime import records_of
from odradek.coordinator.versioned_messages import CoordinatorRecordError, read_version
from odradek.protocol.records.batch import AnyBatch
from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import Clock
from odradek.timer.sliced_work import Steps, Wait

_log = logging.getLogger(__name__)


class StoredOffset(NamedTuple):
    """The value of an offset key, still as bytes, and the offset of the first record of its batch."""

    record_offset: int
    value: bytes


class Replay:
    """The last value of each key of one log."""

    def __init__(self) -> None:
        self.offsets: dict[bytes, StoredOffset] = {}
        self.transactional: dict[int, dict[bytes, StoredOffset]] = {}
        self.groups: dict[bytes, bytes] = {}

    def run(self, batches: Iterable[AnyBatch | Wait]) -> Steps:
        """Read the log, one record per step."""
        for batch in batches:
            if isinstance(batch, Wait):
                yield batch
            elif batch.is_control:
                self._complete_transaction(batch)
                yield None
            else:
                yield from self._records(batch)

    def _records(self, batch: AnyBatch) -> Steps:
        offsets: dict[bytes, StoredOffset] = self.offsets
        if batch.is_transactional:
            offsets = self.transactional.setdefault(batch.producer_id, {})
        first_offset: int | None = None
        for record in records_of(batch):
            if first_offset is None:
                first_offset = record.offset
            if record.key is None:
                _log.warning("Ignoring the record at offset %d: it has no key", record.offset)
                continue
            key = normalized_key(record.key)
            if is_offset_key(key):
                if record.value is None:
                    offsets.pop(key, None)
                else:
                    offsets[key] = StoredOffset(first_offset, record.value)
            elif is_group_key(key):
                if record.value is None:
                    self.groups.pop(key, None)
                else:
                    self.groups[key] = record.value
            else:
                _log.warning("Ignoring the record at offset %d: unknown key version %s", record.offset, key[:2].hex())
            yield None

    def _complete_transaction(self, batch: AnyBatch) -> None:
        marker = control_record_type(batch)
        if marker is None:  # emptied by compaction, which happens only after its transaction is complete
            return
        pending = self.transactional.pop(batch.producer_id, {})
        if marker is not ControlRecordType.COMMIT:
            return
        for key, stored in pending.items():
            current = self.offsets.get(key)
            if current is None or current.record_offset < stored.record_offset:
                self.offsets[key] = stored


@dataclass(slots=True)
class _GroupOffsetsFound:
    """The offsets of one group, committed and pending by producer id."""

    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    transactional: dict[int, dict[TopicPartition, CommittedOffset]] = field(default_factory=dict)


def loaded_groups(replay: Replay, clock: Clock) -> Iterator[GroupMetadata | None]:
    """The groups of the log, one by one; None for a step without a finished group."""
    offsets: dict[str, _GroupOffsetsFound] = {}
    for key, stored in replay.offsets.items():
        if (entry := _decode_offset(key, stored)) is not None:
            group_id, topic_partition, committed = entry
            offsets.setdefault(group_id, _GroupOffsetsFound()).committed[topic_partition] = committed
        yield None
    for producer_id, pending in replay.transactional.items():
        for key, stored in pending.items():
            if (entry := _decode_offset(key, stored)) is not None:
                group_id, topic_partition, committed = entry
                found = offsets.setdefault(group_id, _GroupOffsetsFound())
                found.transactional.setdefault(producer_id, {})[topic_partition] = committed
            yield None
    for key, value in replay.groups.items():
        group = _decode_group(key, value, clock)
        if group is not None:
            found = offsets.pop(group.group_id, _GroupOffsetsFound())
            group.offsets.load(found.committed, found.transactional)
        yield group
    for group_id, found in offsets.items():
        group = GroupMetadata(group_id, clock)
        group.offsets.load(found.committed, found.transactional)
        yield group


def _decode_offset(key: bytes, stored: StoredOffset) -> tuple[str, TopicPartition, CommittedOffset] | None:
    try:
        group_id, topic_partition = read_offset_key(key)
        return group_id, topic_partition, CommittedOffset(stored.record_offset, read_offset_value(stored.value))
    except CoordinatorRecordError as error:
        _log.error("Ignoring the offset commit at offset %d: %s", stored.record_offset, error)
        return None


def _decode_group(key: bytes, data: bytes, clock: Clock) -> GroupMetadata | None:
    try:
        group_id = read_group_key(key)
        version = read_version(data)
        value = read_group_value(data)
    except CoordinatorRecordError as error:
        _log.error("Ignoring a record of group metadata: %s", error)
        return None
    group = GroupMetadata(group_id, clock, GroupState.STABLE if value.members else GroupState.EMPTY)
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    group.lifecycle.since_ms = None if value.current_state_timestamp == -1 else value.current_state_timestamp
    for member in value.members:
        group.add(member_from_record(value, member, version))
    group.protocol_type = value.protocol_type or None
    group.subscribed_topics = group.compute_subscribed_topics()
    return group
