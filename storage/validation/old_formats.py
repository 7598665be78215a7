"""Validates records that are written in message format v0 or v1, and assigns their offsets on the leader.

    received                                       treatment
    ---------------------------------------------  --------------------------------------------------------------
    messages of the same magic, uncompressed       in place: each gets its offset, and in magic 1 its timestamp
    a wrapper of magic 1 with the target codec     in place: it gets the last offset and the largest timestamp
      and inner offsets 0..n-1
    anything else                                  rebuilt: one message per record, or one wrapper around them

These formats have no headers, producers and leader epochs, and magic 0 has no timestamps.

Kafka: LogValidator.convertAndAssignOffsetsNonCompressed, LogValidator.assignOffsetsNonCompressed,
LogValidator.validateMessagesAndAssignOffsetsCompressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import batches
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.layout import LOG_APPEND_TIME, MAGIC_V0, MAGIC_V1, NO_TIMESTAMP
from odradek.protocol.records.legacy import LegacyBatch, build_message, build_messages
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.append_info import AppendedBatch
from odradek.storage.validation.record_checks import raise_record_errors, records_of
from odradek.storage.validation.validation_rules import ValidatedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.validation.validation_rules import ValidationRules


def assign_in_old_format(
    found: Sequence[AnyBatch],
    rules: ValidationRules,
    source_codec: int,
    target_codec: int,
    next_offset: int,
    now_ms: int,
) -> ValidatedBatch:
    """Messages in the magic of `rules`, with offsets from `next_offset` on.

    Raises: KafkaError for invalid records, and for records that the format cannot represent.
    """
    raise_record_errors(found, rules, now_ms)
    first = found[0]
    same = [batch for batch in found if isinstance(batch, LegacyBatch) and batch.magic == rules.record_version]
    can_stay = len(same) == len(found) and source_codec == target_codec
    sizes: list[int] = []
    if can_stay and source_codec == CompressionType.NONE:
        stored = b"".join(
            _updated(message, offset, message.max_timestamp, rules, now_ms)
            for offset, message in enumerate(same, next_offset)
        )
    elif can_stay and rules.record_version == MAGIC_V1 and _is_sequential(first, rules):
        count, largest = 0, NO_TIMESTAMP
        for record in records_of(first, rules):
            count += 1
            largest = max(largest, record.timestamp)
        stored = _updated(same[0], next_offset + count - 1, largest, rules, now_ms)
    else:
        stored = _rebuilt(found, rules, target_codec, next_offset, now_ms, sizes)
    log_append_time = now_ms if rules.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP
    built = stored_messages(stored, first, next_offset, log_append_time, bool(sizes))
    return built._replace(temporary_bytes=sum(sizes))


def stored_messages(
    stored: bytes, first: AnyBatch, first_offset: int, log_append_time: int, is_rebuilt: bool
) -> ValidatedBatch:
    """The result for messages that have their offsets."""
    view = memoryview(stored)
    messages = [
        AppendedBatch(message.last_offset, message.max_timestamp, message.last_offset, message.size_in_bytes)
        for message in batches(view)
    ]
    return ValidatedBatch(
        batch=first,
        parts=[view],
        size=len(stored),
        first_offset=first_offset,
        last_offset=messages[-1].last_offset,
        max_timestamp=max(message.max_timestamp for message in messages),
        log_append_time=log_append_time,
        messages=messages,
        is_rebuilt=is_rebuilt,
    )


def _is_sequential(wrapper: AnyBatch, rules: ValidationRules) -> bool:
    return all(record.offset == index for index, record in enumerate(records_of(wrapper, rules)))


def _updated(message: LegacyBatch, last_offset: int, timestamp: int, rules: ValidationRules, now_ms: int) -> bytes:
    """A message with its offset, and with a new timestamp if its own is not the right one."""
    timestamp = now_ms if rules.timestamp_type == LOG_APPEND_TIME else max(timestamp, NO_TIMESTAMP)
    is_right = message.timestamp_type == rules.timestamp_type and message.max_timestamp == timestamp
    if message.magic == MAGIC_V0 or is_right:
        return message.with_last_offset(last_offset) + message.buffer[8:]
    return build_message(
        message.magic,
        last_offset,
        timestamp,
        message.key,
        message.value,
        compression_type=message.compression_type,
        timestamp_type=rules.timestamp_type,
    )


def _rebuilt(
    found: Sequence[AnyBatch],
    rules: ValidationRules,
    target_codec: int,
    next_offset: int,
    now_ms: int,
    sizes: list[int],
) -> bytes:
    """`sizes` as in `build_messages`."""
    magic = rules.record_version
    if target_codec == CompressionType.ZSTD:
        raise _cannot_hold(f"ZStandard compression is not supported for magic {magic}")
    stored = build_messages(
        _representable(found, rules),
        magic,
        base_offset=next_offset,
        compression_type=target_codec,
        timestamp_type=rules.timestamp_type,
        log_append_time=now_ms,
        level=rules.level,
        sizes=sizes,
    )
    for message in batches(memoryview(stored)):
        if message.size_in_bytes > rules.max_message_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"Message batch size is {message.size_in_bytes} bytes in append to partition {rules.partition} which "
                f"exceeds the maximum configured size of {rules.max_message_bytes}.",
            )
    return stored


def _representable(found: Sequence[AnyBatch], rules: ValidationRules) -> Iterator[SimpleRecord]:
    """The records one by one. Raises KafkaError at one that the format cannot represent."""
    for batch in found:
        for record in records_of(batch, rules):
            if record.headers:
                raise _cannot_hold(f"Magic v{rules.record_version} does not support record headers")
            if record.timestamp < NO_TIMESTAMP:
                raise _cannot_hold(f"Invalid negative timestamp {record.timestamp}")
            yield SimpleRecord(record.timestamp, record.key, record.value)


def _cannot_hold(message: str) -> KafkaError:
    """The error for a record that the format cannot represent. Apache: IllegalArgumentException of its builder."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
