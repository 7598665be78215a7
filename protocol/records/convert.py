"""Conversion between magics: batches of old producers become magic 2, batches for old consumers magic 0 or 1.

Up (Produce v0-2): headers, sequences and leader epochs do not exist in old messages; timestamps of magic 0 become -1.
Down (Fetch v0-3): headers are lost, control batches are left out. An uncompressed batch becomes one message per record
and begins at the record that was asked for, since some librdkafka versions rely on it; a compressed one becomes one
wrapper with all its records. zstd cannot be expressed (KIP-110). Batches old enough pass as they are.

Kafka: RecordsUtil.downConvert, LazyDownConversionRecordsSend and the converting paths of LogValidator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.records.batch import AnyBatch, LegacyBatch, batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import InvalidRecordError, UnsupportedCompressionTypeError
from odradek.protocol.records.layout import (
    BATCH_OVERHEAD,
    CREATE_TIME,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAX_DECOMPRESSED_BYTES,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord

_OVERFLOW: Final = Struct(">qi")


class UnsupportedConversionError(UnsupportedCompressionTypeError):
    """A batch to convert is compressed with zstd."""


class DownConverted(NamedTuple):
    """`records`: messages of an old format; `converted` is how many of them did not have it before."""

    records: bytes
    converted: int
    temporary_bytes: int = 0
    """Memory for the batches and, before compression, for what they became. Kafka: temporaryMemoryBytes."""


def down_convert(
    buffer: memoryview,
    *,
    magic: int,
    first_offset: int,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> DownConverted:
    """The batches of a buffer as messages of `magic` 0 or 1: all of them, or none where zstd is among them.

    Raises: UnsupportedConversionError.
    """
    parts: list[bytes | memoryview] = []
    count = temporary_bytes = 0
    for batch in batches(buffer):
        if batch.is_control:
            continue
        if batch.compression_type == CompressionType.ZSTD:
            raise UnsupportedConversionError("Down-conversion of zstandard-compressed batches is not supported")
        if batch.magic <= magic:
            parts.append(batch.buffer)
            temporary_bytes += batch.size_in_bytes
        else:
            messages, converted, converted_bytes = convert_to_magic(batch, magic, first_offset, max_decompressed_bytes)
            count += converted
            temporary_bytes += converted_bytes
            parts.append(messages)
    return DownConverted(b"".join(parts), count, temporary_bytes)


def overflow_batch(remaining: int, max_bytes: int) -> bytes:
    """The beginning of a message that fills the room which converted records leave in a response.

    Its declared size is larger than that room, so a consumer takes it for a message that was cut off.
    """
    size = max(LOG_OVERHEAD, min(remaining + 1, max_bytes))
    return _OVERFLOW.pack(-1, max(remaining + 1, BATCH_OVERHEAD)).ljust(size, b"\0")[:remaining]


def convert_to_magic(
    batch: AnyBatch, magic: int, first_offset: int = 0, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> DownConverted:
    """One data batch as messages of a lower magic; empty if none of its records is left.

    The records are taken one by one: a batch of millions is never in memory as values.
    """
    codec = batch.compression_type
    records = (
        record
        for record in batch.records(max_decompressed_bytes)
        if codec != CompressionType.NONE or record.offset >= first_offset
    )
    first = next(records, None)
    if first is None:
        return DownConverted(b"", 0)
    count = 0

    def counted() -> Iterator[Record]:
        nonlocal count
        for record in chain((first,), records):
            count += 1
            yield record

    is_append_time = batch.timestamp_type == LOG_APPEND_TIME
    sizes: list[int] = []
    messages = build_messages(
        counted(),
        magic,
        base_offset=first.offset,
        compression_type=codec,
        timestamp_type=LOG_APPEND_TIME if is_append_time else CREATE_TIME,
        log_append_time=batch.max_timestamp if is_append_time else NO_TIMESTAMP,
        sizes=sizes,
    )
    return DownConverted(messages, count, batch.size_in_bytes + sum(sizes))


def deep_records(batch: AnyBatch, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of a batch that came from a client; a legacy wrapper's inner checksums and magics are verified."""
    if isinstance(batch, LegacyBatch):
        return batch.records(max_decompressed_bytes, from_client=True)
    return batch.records(max_decompressed_bytes)


def rebuild(
    records: Iterable[Record],
    *,
    base_offset: int,
    compression_type: int,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
    like: AnyBatch | None = None,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    sizes: list[int] | None = None,
) -> bytearray:
    """One batch of magic 2 with offsets counting up from `base_offset`; producer and transaction come from `like`.

    The records are taken one by one: a batch of millions is never in memory as values. `sizes` as in `build_batch`.
    """
    rest = iter(records)
    first = next(rest, None)
    if first is None:
        raise InvalidRecordError("Record batch has no batches at all")
    return build_batch(
        (SimpleRecord(record.timestamp, record.key, record.value, record.headers) for record in chain((first,), rest)),
        base_offset=base_offset,
        compression_type=compression_type,
        level=level,
        timestamp_type=timestamp_type,
        log_append_time=log_append_time,
        producer_id=NO_PRODUCER_ID if like is None else like.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if like is None else like.producer_epoch,
        base_sequence=NO_SEQUENCE if like is None else like.base_sequence,
        is_transactional=like is not None and like.is_transactional,
        partition_leader_epoch=partition_leader_epoch,
        sizes=sizes,
    )
