"""Prints a `.log` file as kafka-dump-log does: a line for each batch and, with deep iteration, one for each record.

The file is read batch by batch. Only pairs of non-consecutive offsets are kept, for the findings at the end. A batch
that cannot be read is an error, as in Apache's tool: the lines before it are printed.

Kafka: DumpLogSegments.dumpLog, DumpLogSegments.printBatchLevel.
"""

from __future__ import annotations

import os
import re
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.dump_log.batch_facts import (
    TIMESTAMP_TYPES,
    batch_facts,
    codec,
    content_facts,
    header_key,
    last_sequence,
    record_facts,
    size,
)
from odradek.broker.tools.dump_log.java_text import optional_long, parse_long
from odradek.protocol.records.batch import AnyBatch, LegacyBatch, RecordBatch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import BATCH_OVERHEAD, MAGIC_POSITION, MAGIC_V0, MAGIC_V2, MAX_INT32
from odradek.protocol.records.record import Record
from odradek.storage.segment.read_only_files import open_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.tools.dump_log.record_decoders import RecordDecoder
    from odradek.broker.tools.dump_log.rows import Rows
    from odradek.storage.segment.file_records import BatchPosition, FileRecords

LOG_SUFFIX: Final = ".log"
KRAFT_SNAPSHOT_SUFFIX: Final = ".checkpoint"
ALL_BYTES: Final = MAX_INT32
"""The value of --max-bytes that means the whole file."""

_KRAFT_BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
_KRAFT_SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_MAX_INT8: Final = 127
"""The highest magic. A larger byte is negative, which Kafka treats as an old magic."""


class LogDumpOptions(NamedTuple):
    """How much of a log is printed."""

    decoder: RecordDecoder
    is_deep: bool = False
    prints_contents: bool = False
    prints_metadata: bool = True
    max_bytes: int = ALL_BYTES


class OffsetPairs:
    """Pairs of non-consecutive offsets, sixteen bytes each: a compacted segment can have millions."""

    __slots__ = ("_flat",)

    def __init__(self) -> None:
        self._flat = array("q")

    def append(self, first: int, second: int) -> None:
        self._flat.extend((first, second))

    def __bool__(self) -> bool:
        return bool(self._flat)

    def newest_first(self) -> Iterable[tuple[int, int]]:
        for at in range(len(self._flat) - 2, -1, -2):
            yield self._flat[at], self._flat[at + 1]


def dump_log(path: str, options: LogDumpOptions, rows: Rows) -> OffsetPairs:
    """Print the file. Returns the pairs of offsets that are not consecutive."""
    name = os.path.basename(path)
    rows.write(f"{_heading(name)}\n")
    printer = _JsonPrinter(options, rows) if rows.is_json else _LogPrinter(options, rows)
    valid_bytes = 0
    with open_records(path) as records:
        end = min(records.size, options.max_bytes)
        for where in records.positions(0, end):
            printer.print_batch(_view(records, where), valid_bytes)
            valid_bytes += where.size
    if end > valid_bytes and options.max_bytes == ALL_BYTES:
        found = end - valid_bytes
        if rows.is_json:
            rows.row("invalidBytes", {"position": valid_bytes, "size": found})
        rows.write(f"Found {found} invalid bytes at the end of {name}\n")
    return printer.non_consecutive


def _heading(name: str) -> str:
    if name.endswith(LOG_SUFFIX):
        return f"Log starting offset: {parse_long(name.split('.')[0])}"
    if name == _KRAFT_BOOTSTRAP_FILE:
        return "KRaft bootstrap snapshot"
    match = _KRAFT_SNAPSHOT_NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is not the name of a snapshot")
    return f"Snapshot end offset: {int(match[1])}, epoch: {int(match[2])}"


def _view(records: FileRecords, where: BatchPosition) -> AnyBatch:
    """The batch. One that is declared shorter than its header gets the bytes of a header; it is not valid."""
    buffer = memoryview(records.read(where.position, max(where.size, BATCH_OVERHEAD)))
    if MAGIC_V2 <= buffer[MAGIC_POSITION] <= _MAX_INT8:
        return RecordBatch(buffer)
    return LegacyBatch(buffer[: where.size])


class _LogPrinter:
    """Prints batches, and collects the pairs of non-consecutive offsets."""

    def __init__(self, options: LogDumpOptions, rows: Rows) -> None:
        self.non_consecutive = OffsetPairs()
        self._options = options
        self._rows = rows
        self._write = rows.write
        self._last_offset = -1

    def print_batch(self, batch: AnyBatch, position: int) -> None:
        write = self._write
        if isinstance(batch, RecordBatch):
            write(
                f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
                f"baseSequence: {batch.base_sequence} lastSequence: {last_sequence(batch)} "
                f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
                f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
                f"isTransactional: {_boolean(batch.is_transactional)} isControl: {_boolean(batch.is_control)} "
                f"deleteHorizonMs: {optional_long(batch.delete_horizon_ms)}"
            )
        else:
            write(f"offset: {batch.last_offset}")
            if batch.magic < MAGIC_V0:
                raise CorruptRecordError(f"Invalid magic {batch.magic} of the batch at position {position}")
        write(
            f" position: {position} {TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp} "
            f"size: {batch.size_in_bytes} magic: {batch.magic} compresscodec: {codec(batch)} crc: {batch.crc} "
            f"isvalid: {_boolean(batch.is_valid())}\n"
        )
        self._print_deep(batch)

    def _print_deep(self, batch: AnyBatch) -> None:
        if self._options.is_deep:
            if isinstance(batch, RecordBatch):
                self._print_records(batch)
            else:
                self._print_messages(batch)

    def _print_records(self, batch: RecordBatch) -> None:
        for record in _records(batch):
            self._note_offset(record.offset)
            prefix = "| "
            if self._options.prints_metadata:
                keys = ",".join(header_key(key) for key, _ in record.headers)
                self._write(f"{_metadata(batch, record)} sequence: {record.sequence} headerKeys: [{keys}]")
                if batch.is_control:
                    from odradek.broker.tools.dump_log import control_facts  # the plain case does not pay for it

                    self._write(control_facts.control_text(record))
                prefix = " "
            self._print_contents(record, prefix, is_control=batch.is_control)

    def _print_messages(self, batch: LegacyBatch) -> None:
        for message, record in _messages(batch):
            self._note_offset(record.offset)
            prefix = "| "
            if self._options.prints_metadata:
                valid = _boolean(message.is_valid())
                self._write(f"{_metadata(batch, record)} isValid: {valid} crc: {message.crc}}}")
                prefix = " "
            self._print_contents(record, prefix, is_control=False)

    def _note_offset(self, offset: int) -> None:
        if self._last_offset not in (-1, offset - 1):
            self.non_consecutive.append(self._last_offset, offset)
        self._last_offset = offset

    def _print_contents(self, record: Record, prefix: str, *, is_control: bool) -> None:
        line = ""
        if self._options.prints_contents and not is_control:
            key, payload = self._options.decoder(record)
            if key is not None:
                line = f"{prefix}key: {key}"
            if payload is not None:
                line += f" payload: {payload}"
        self._write(f"{line}\n")


class _JsonPrinter(_LogPrinter):
    """The same as objects."""

    def print_batch(self, batch: AnyBatch, position: int) -> None:
        if batch.magic < MAGIC_V0:
            raise CorruptRecordError(f"Invalid magic {batch.magic} of the batch at position {position}")
        self._rows.row("batch", batch_facts(batch, position))
        self._print_deep(batch)

    def _print_records(self, batch: RecordBatch) -> None:
        for record in _records(batch):
            facts = record_facts(batch, record)
            facts |= {"sequence": record.sequence, "headerKeys": [header_key(key) for key, _ in record.headers]}
            if batch.is_control:
                from odradek.broker.tools.dump_log import control_facts  # as above

                facts |= control_facts.control_facts(record)
            self._print_record(record, facts, is_control=batch.is_control)

    def _print_messages(self, batch: LegacyBatch) -> None:
        for message, record in _messages(batch):
            facts = record_facts(batch, record)
            facts |= {"isValid": message.is_valid(), "crc": message.crc}
            self._print_record(record, facts, is_control=False)

    def _print_record(self, record: Record, facts: dict[str, object], *, is_control: bool) -> None:
        self._note_offset(record.offset)
        if not self._options.prints_metadata:
            facts = {"offset": record.offset}
        if self._options.prints_contents and not is_control:
            facts |= content_facts(record, self._options.decoder(record))
        self._rows.row("record", facts)


def _records(batch: RecordBatch) -> Iterable[Record]:
    records: Iterable[Record] = batch.records(MAX_INT32)
    # As in Kafka: all of a compressed batch, or none.
    return records if batch.compression_type == CompressionType.NONE else list(records)


def _messages(batch: LegacyBatch) -> Iterable[tuple[LegacyBatch, Record]]:
    is_wrapper = batch.compression_type != CompressionType.NONE
    messages = batch.inner_messages(MAX_INT32) if is_wrapper else [batch]
    return zip(messages, batch.records(MAX_INT32), strict=True)


def _metadata(batch: AnyBatch, record: Record) -> str:
    return (
        f"| offset: {record.offset} {TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp} "
        f"keySize: {size(record.key)} valueSize: {size(record.value)}"
    )


def _boolean(value: bool) -> str:
    return "true" if value else "false"
