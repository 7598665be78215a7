"""Prints indexes and snapshots as kafka-dump-log does, and compares the indexes with the log.

    .index       the batch at an entry's position must end at its offset
    .timeindex   a batch must end at an entry's offset, its largest timestamp be the entry's; timestamps must grow

The zero fill ends an index: entries after the first one that have the base offset again.

Kafka: DumpLogSegments.dumpIndex, DumpLogSegments.dumpTimeIndex, DumpLogSegments.dumpTxnIndex,
DumpLogSegments.dumpProducerIdSnapshot, OffsetIndex.sanityCheck, TimeIndex.sanityCheck.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.tools.dump_log.java_text import absolute_path, optional_long, parse_long
from odradek.broker.tools.dump_log.rows import pairs
from odradek.protocol.records.layout import MAX_INT32, NO_TIMESTAMP
from odradek.storage.log_files import INDEX_FILE_SUFFIX, LOG_FILE_SUFFIX
from odradek.storage.segment import offset_index, time_index, transaction_index
from odradek.storage.segment.read_only_files import open_offset_index, open_records, open_time_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.tools.dump_log.rows import Rows
    from odradek.storage.offsets import TimestampOffset
    from odradek.storage.segment.file_records import FileRecords
    from odradek.storage.segment.offset_index import OffsetIndex
    from odradek.storage.segment.time_index import TimeIndex

    Write = Callable[[str], object]


class IndexDumpOptions(NamedTuple):
    """How an index is printed and checked."""

    sanity_only: bool = False
    verify_only: bool = False
    max_message_size: int = 5 * 1024 * 1024


class TimeIndexErrors:
    """Findings in time indexes: absolute path -> pairs of numbers, in the order of the entries."""

    __slots__ = ("mismatches", "not_found", "out_of_order")

    def __init__(self) -> None:
        self.mismatches: dict[str, list[tuple[int, int]]] = {}
        self.out_of_order: dict[str, list[tuple[int, int]]] = {}
        self.not_found: dict[str, list[tuple[int, int]]] = {}


class CorruptIndexError(Exception):
    """An index that a start would rebuild, or that points outside its log."""


def dump_index(path: str, options: IndexDumpOptions, rows: Rows) -> list[tuple[int, int]]:
    """Print the entries. Returns the pairs (offset of the entry, last offset of the batch) that differ."""
    base_offset, log_path = _segment_of(path)
    mismatches = []
    with open_records(log_path) as records:
        index = open_offset_index(path, base_offset)
        if not index.entries:
            rows.write(f"{path} is empty.\n")
            return []
        if options.sanity_only:
            check_offset_index(index)
            rows.write(f"{path} passed sanity check.\n")
            return []
        for slot in range(index.entries):
            entry = index.entry(slot)
            if entry.offset == base_offset and slot:
                break
            found = _last_offset_at(records, entry.position, options.max_message_size)
            if found != entry.offset:
                mismatches.append((entry.offset, found))
            if not options.verify_only:
                rows.row("entry", {"offset": entry.offset, "position": entry.position})
    return mismatches


def dump_time_index(path: str, options: IndexDumpOptions, rows: Rows, errors: TimeIndexErrors) -> None:
    """Print the entries; differences to the log go to `errors`."""
    base_offset, log_path = _segment_of(path)
    with open_records(log_path) as records:
        offsets = open_offset_index(os.path.splitext(path)[0] + INDEX_FILE_SUFFIX, base_offset)
        times = open_time_index(path, base_offset)
        if options.sanity_only:
            check_time_index(times)
            rows.write(f"{path} passed sanity check.\n")
            return
        previous = NO_TIMESTAMP
        for slot in range(times.entries):
            entry = times.entry(slot)
            if entry.offset == base_offset and slot:
                return
            _compare(entry, previous, records, offsets.lookup(entry.offset).position, absolute_path(path), errors)
            if not options.verify_only:
                rows.row("entry", {"timestamp": entry.timestamp, "offset": entry.offset})
            previous = entry.timestamp


def _compare(
    entry: TimestampOffset, previous: int, records: FileRecords, position: int, path: str, errors: TimeIndexErrors
) -> None:
    """Add the findings of one entry of a time index to `errors`. The search for its batch begins at `position`."""
    timestamp, offset = entry
    where = records.find_offset(offset, position)
    if where is None or where.last_offset != offset:
        errors.not_found.setdefault(path, []).append((offset, -1 if where is None else where.last_offset))
        return
    batch = records.batch_at(where)
    youngest = max((record.timestamp for record in batch.records(MAX_INT32)), default=NO_TIMESTAMP)
    youngest = max(youngest, NO_TIMESTAMP)
    if youngest != timestamp:
        errors.mismatches.setdefault(path, []).append((timestamp, youngest))
    if previous >= timestamp:
        errors.out_of_order.setdefault(path, []).append((timestamp, previous))


def dump_txn_index(path: str, rows: Rows) -> None:
    """Print the aborted transactions; a partial entry at the end is none."""
    with open(path, "rb") as file:
        content = file.read()
    entry = transaction_index.ENTRY
    found: list[dict[str, object]] = []
    for version, *fields in entry.iter_unpack(content[: len(content) // entry.size * entry.size]):
        if version >> 8 > transaction_index.CURRENT_VERSION:  # Kafka looks at the first of the two bytes
            raise CorruptIndexError(
                f"Unexpected aborted transaction version {version >> 8} in transaction index {absolute_path(path)}, "
                f"current version is {transaction_index.CURRENT_VERSION}"
            )
        producer_id, first_offset, last_offset, last_stable_offset = fields
        found.append(
            {
                "version": version >> 8,
                "producerId": producer_id,
                "firstOffset": first_offset,
                "lastOffset": last_offset,
                "lastStableOffset": last_stable_offset,
            }
        )
    for facts in found:  # all entries, or an error
        rows.row("abortedTransaction", facts)


def dump_snapshot(path: str, rows: Rows, complain: Write) -> None:
    """Print the producers. A corrupt snapshot is reported through `complain` and is no error."""
    # A quarter of the start of the command, which mostly prints logs.
    from odradek.storage.producers.producer_state_manager import CorruptSnapshotError, decode_snapshot

    with open(path, "rb") as file:
        content = file.read()
    try:
        entries = decode_snapshot(content)
    except CorruptSnapshotError as error:
        complain(f"{error}\n")
        return
    for entry in entries:
        first_offset = entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None
        producer = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": first_offset,
            "lastTimestamp": entry.last_timestamp,
        }
        batches = [
            {
                "firstSequence": batch.first_seq,
                "lastSequence": batch.last_seq,
                "lastOffset": batch.last_offset,
                "offsetDelta": batch.offset_delta,
                "timestamp": batch.timestamp,
            }
            for batch in entry.batches
        ]
        if rows.is_json:
            rows.row("producer", producer | {"batches": batches})
        else:
            text = pairs(producer | {"currentTxnFirstOffset": optional_long(first_offset)})
            rows.write(f"{text} {''.join(map(pairs, batches))}\n")


def check_offset_index(index: OffsetIndex) -> None:
    """The check of an offset index at a start. Raises: CorruptIndexError."""
    if index.last_offset < index.base_offset:
        raise CorruptIndexError(
            f"Corrupt index found, index file {absolute_path(index.path)} has non-zero size but the last offset is "
            f"{index.last_offset} which is less than the base offset {index.base_offset}"
        )
    _check_size(index, "Index file", offset_index.ENTRY_SIZE)


def check_time_index(index: TimeIndex) -> None:
    """The check of a time index at a start. Raises: CorruptIndexError."""
    if index.entries:
        last, first = index.last_entry, index.entry(0)
        found = (
            f"Corrupt time index found, time index file ({absolute_path(index.path)}) has non-zero size but the last"
        )
        if last.timestamp < first.timestamp:
            raise CorruptIndexError(
                f"{found} timestamp is {last.timestamp} which is less than the first timestamp {first.timestamp}"
            )
        if last.offset < index.base_offset:
            raise CorruptIndexError(
                f"{found} offset is {last.offset} which is less than the first offset {index.base_offset}"
            )
    _check_size(index, "Time index file", time_index.ENTRY_SIZE)


def _check_size(index: OffsetIndex | TimeIndex, what: str, entry_size: int) -> None:
    size = os.stat(index.path).st_size
    if size % entry_size:
        raise CorruptIndexError(
            f"{what} {absolute_path(index.path)} is corrupt, found {size} bytes which is neither positive nor a "
            f"multiple of {entry_size}"
        )


def _segment_of(path: str) -> tuple[int, str]:
    """The base offset in the name of an index, and the path of the log beside it."""
    stem = os.path.basename(path).split(".")[0]
    return parse_long(stem), os.path.join(os.path.dirname(path), stem + LOG_FILE_SUFFIX)


def _last_offset_at(records: FileRecords, position: int, max_message_size: int) -> int:
    if not 0 <= position <= records.size:
        raise CorruptIndexError(
            f"Slice from position {position} exceeds end position of {records.path}, which has {records.size} bytes"
        )
    for where in records.positions(position, position + max_message_size):
        return where.last_offset
    raise CorruptIndexError(f"There is no whole batch at position {position} of {records.path}")
