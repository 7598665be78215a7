"""The checks of single records on the leader: keys in compacted topics, timestamps within their limits.

Kafka: LogValidator.validateRecord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.convert import deep_records
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP
from odradek.storage.append_info import NO_KEY, RecordValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.protocol.records.batch import AnyBatch, RecordBatch
    from odradek.protocol.records.record import Record
    from odradek.protocol.records.record_walks import RecordsSummary
    from odradek.storage.validation.validation_rules import ValidationRules

_SHOWN_RECORD_ERRORS: Final = 3

RECORD_ERRORS_MAX: Final = 10_000
"""Invalid records of a batch that the answer names: 1 MB of compressed records may be millions."""


def records_of(batch: AnyBatch, rules: ValidationRules) -> Iterable[Record]:
    """The records of a received batch."""
    return deep_records(batch, max_decompressed_bytes=rules.max_decompressed_bytes)


def has_bad_records(batch: RecordBatch, summary: RecordsSummary, rules: ValidationRules, now_ms: int) -> bool:
    """Whether the summary of a batch shows an invalid record."""
    if rules.compact and summary.keyless:
        return True
    if rules.timestamp_type != CREATE_TIME:
        return False
    youngest, oldest = summary.max_timestamp, summary.min_timestamp
    if batch.timestamp_type == LOG_APPEND_TIME:
        youngest = oldest = batch.max_timestamp
    return (oldest != NO_TIMESTAMP and now_ms - oldest > rules.timestamp_before_max_ms) or (
        youngest != NO_TIMESTAMP and youngest - now_ms > rules.timestamp_after_max_ms
    )


def raise_record_errors(found: Sequence[AnyBatch], rules: ValidationRules, now_ms: int) -> None:
    """Check every record. Raises RecordValidationError with the list of the first invalid ones, if any."""
    for batch in found:
        errors: list[tuple[int, str]] = []
        count = 0
        has_time_error = False
        for index, record in enumerate(records_of(batch, rules)):
            message = _key_error(record, rules)
            if message is None and (message := _timestamp_error(batch, record, rules, now_ms)) is not None:
                has_time_error = True
            if message is not None:
                count += 1
                if count <= RECORD_ERRORS_MAX:
                    errors.append((index, message))
        if not errors:
            continue
        if has_time_error:
            raise RecordValidationError(
                ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
            )
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{message}')" for index, message in errors[:_SHOWN_RECORD_ERRORS]
        )
        raise RecordValidationError(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {count} record errors in total, and only showing "
            f"the first three errors at most: [{shown}]",
            errors,
        )


def _key_error(record: Record, rules: ValidationRules) -> str | None:
    if rules.compact and record.key is None:
        return f"{NO_KEY} in topic partition {rules.partition}"
    return None


def _timestamp_error(batch: AnyBatch, record: Record, rules: ValidationRules, now_ms: int) -> str | None:
    timestamp = record.timestamp
    if rules.timestamp_type == CREATE_TIME and timestamp != NO_TIMESTAMP:
        age = now_ms - timestamp
        if age > rules.timestamp_before_max_ms or -age > rules.timestamp_after_max_ms:
            return (
                f"Timestamp {timestamp} of message with offset {record.offset} is out of range. The timestamp should "
                f"be within [{now_ms - rules.timestamp_before_max_ms}, {now_ms + rules.timestamp_after_max_ms}]"
            )
    elif batch.timestamp_type == LOG_APPEND_TIME:
        return (
            f"Invalid timestamp type in message {_shown(record)}. Producer should not set timestamp type to "
            "LogAppendTime."
        )
    return None


def _shown(record: Record) -> str:
    return (
        f"DefaultRecord(offset={record.offset}, timestamp={record.timestamp}, "
        f"key={len(record.key or b'')} bytes, value={len(record.value or b'')} bytes)"
    )
