"""Records as a test sees them, decoded from the bytes of a log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from odradek.protocol.records.batch import AnyBatch, batches
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME

TransactionOutcome: TypeAlias = Literal["committed", "aborted", "open"]

_TIMESTAMP_TYPES: Final = {CREATE_TIME: "CreateTime", LOG_APPEND_TIME: "LogAppendTime"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a log, or of a Produce request."""

    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch."""
    timestamp_type: str
    """`CreateTime`, `LogAppendTime`; `NoTimestampType` for format 0."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int
    producer_id: int
    """-1 without idempotence; so are `producer_epoch` and `sequence`."""
    producer_epoch: int
    sequence: int
    is_transactional: bool
    transaction: TransactionOutcome | None
    """By the log's own indexes; None for a record outside of transactions, and in a Produce request."""
    compression: str
    """Of its batch: `none`, `gzip`, `snappy`, `lz4`, `zstd`."""

    @property
    def text(self) -> str | None:
        """The value as UTF-8."""
        return None if self.value is None else self.value.decode()

    def json(self) -> Any:  # noqa: ANN401 - as json.loads
        """The value as JSON; None for a tombstone."""
        return None if self.value is None else json.loads(self.value)

    def __str__(self) -> str:
        outcome = "" if self.transaction is None else f" {self.transaction}"
        return f"{self.partition}@{self.offset} {shown(self.key)}={shown(self.value)}{outcome}"


SHOWN_BYTES: Final = 60


def shown(data: bytes | None) -> str:
    """A key or value in a message of an assertion: text where it is text, and not too long."""
    if data is None:
        return "null"
    text = data[:SHOWN_BYTES].decode(errors="backslashreplace")
    return f"{text}..." if len(data) > SHOWN_BYTES else text


class AbortedRange(NamedTuple):
    """An aborted transaction: the producer's records with these offsets, both included."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Whole batches of one partition, and what the log knows of their transactions."""

    partition: int
    start: int
    """Records below are not wanted: the first batch may begin earlier."""
    data: bytes
    aborted: tuple[AbortedRange, ...] = ()
    open_from: Mapping[int, int] = field(default_factory=dict)
    """Producer id → first offset of its open transaction."""


def records_of(data: bytes, partition: int) -> Iterator[Record]:
    """The records of a Produce request for one partition."""
    for batch in batches(memoryview(data)):
        yield from _records_of_batch(batch, partition, None)


def records_in(piece: Piece) -> Iterator[Record]:
    """The records of the piece, without markers of transactions."""
    for batch in batches(memoryview(piece.data)):
        if not batch.is_control:
            for record in _records_of_batch(batch, piece.partition, _outcome(batch, piece)):
                if record.offset >= piece.start:
                    yield record


def end_of(piece: Piece) -> int:
    """The offset after the last batch."""
    end = piece.start
    for batch in batches(memoryview(piece.data)):
        end = max(end, batch.next_offset)
    return end


def _outcome(batch: AnyBatch, piece: Piece) -> TransactionOutcome | None:
    if not batch.is_transactional:
        return None
    offset = batch.base_offset
    for aborted in piece.aborted:
        if aborted.producer_id == batch.producer_id and aborted.first_offset <= offset <= aborted.last_offset:
            return "aborted"
    open_from = piece.open_from.get(batch.producer_id)
    return "open" if open_from is not None and offset >= open_from else "committed"


def _records_of_batch(batch: AnyBatch, partition: int, outcome: TransactionOutcome | None) -> Iterator[Record]:
    timestamp_type = _TIMESTAMP_TYPES.get(batch.timestamp_type, "NoTimestampType")
    compression = CompressionType(batch.compression_type).name.lower()
    for record in batch.records():
        yield Record(
            partition=partition,
            offset=record.offset,
            timestamp=record.timestamp,
            timestamp_type=timestamp_type,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
            leader_epoch=batch.partition_leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            sequence=record.sequence,
            is_transactional=batch.is_transactional,
            transaction=outcome,
            compression=compression,
        )
