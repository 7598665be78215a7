"""A long validation, done in a worker process, and its last part, done at the append.

The worker decodes, checks and rebuilds the records as if they began at `next_offset`. At the append, `assign` gives the
result the offsets, the leader epoch and, with LogAppendTime, the time of the append: all three are in the header. So
the order of appends does not depend on the workers, and a worker checks neither producers nor offsets.

Invariants: a result is used only under the rules it was made with; a refusal of the worker is raised at the append,
behind the checks of leadership; the received bytes are never changed.

Kafka: LogValidator, which Apache Kafka's request handlers run under the lock of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch, batches, view_batch
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAGIC_V0, MAGIC_V2
from odradek.storage.append_info import AppendOrigin, RecordValidationError
from odradek.storage.validation.old_formats import stored_messages
from odradek.storage.validation.validation_cost import LongValidationError
from odradek.storage.validation.validation_rules import ValidatedBatch
from odradek.storage.validation.validator import analyze, assign_in_place, validate_and_assign
from odradek.timer.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.validation.validation_rules import ValidationRules


class ValidationJob(NamedTuple):
    """What a worker gets. `records` are those of one partition in a Produce, `now_ms` is the wall clock."""

    records: bytes | memoryview
    rules: ValidationRules
    next_offset: int
    """The log end: messages of format v0 in a wrapper have their offsets inside, and fit only there."""
    now_ms: int


class ValidRecords(NamedTuple):
    """Valid records. `rebuilt` is None where the received batch stays as it is."""

    rebuilt: bytes | None
    max_timestamp: int
    log_append_time: int
    is_rebuilt: bool
    """As in ValidatedBatch: `rebuilt` also has messages of an old format that only got their offsets."""
    conversion_ns: int = 0
    temporary_bytes: int = 0


class Refusal(NamedTuple):
    """The error of invalid records: the arguments of a KafkaError, or of a RecordValidationError."""

    code: ErrorCode
    message: str
    record_errors: list[tuple[int, str]] | None


class FinishedValidation(NamedTuple):
    """A job with its result."""

    job: ValidationJob
    result: ValidRecords | Refusal


def validate(job: ValidationJob, report: Callable[[object], None]) -> ValidRecords | Refusal:
    """Do the job; a function for a WorkerPool."""
    records, rules = memoryview(job.records), job.rules
    try:
        found = analyze(records, rules, AppendOrigin.CLIENT)
        validated = validate_and_assign(
            found,
            rules,
            AppendOrigin.CLIENT,
            next_offset=job.next_offset,
            leader_epoch=0,
            now_ms=job.now_ms,
            may_take_long=True,
            monotonic_ns=SystemClock().monotonic_ns,
        )
    except CorruptRecordError as error:
        return Refusal(ErrorCode(error.error_code), str(error), None)
    except RecordValidationError as error:
        return Refusal(error.code, error.message, error.record_errors)
    except KafkaError as error:
        return Refusal(error.code, error.message, None)
    is_received = validated.batch is found[0] and not validated.messages
    rebuilt = None if is_received else b"".join(validated.parts)
    return ValidRecords(
        rebuilt,
        validated.max_timestamp,
        validated.log_append_time,
        validated.is_rebuilt,
        validated.conversion_ns,
        validated.temporary_bytes,
    )


def assign(
    finished: FinishedValidation,
    records: memoryview,
    rules: ValidationRules,
    *,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> ValidatedBatch:
    """The validated batch with its offsets.

    Raises: KafkaError, the worker's refusal; LongValidationError if the rules, or an offset inside a wrapper, do not
    hold any more.
    """
    job, result = finished
    if job.rules != rules:
        raise LongValidationError
    if isinstance(result, Refusal):
        code, message, record_errors = result
        raise (
            KafkaError(code, message) if record_errors is None else RecordValidationError(code, message, record_errors)
        )
    if rules.record_version < MAGIC_V2:
        assert result.rebuilt is not None
        return _in_old_format(job, result, result.rebuilt, next_offset)
    batch = RecordBatch(records if result.rebuilt is None else memoryview(result.rebuilt))
    if result.rebuilt is None and len(records) != batch.size_in_bytes:
        batch = RecordBatch(records[: batch.size_in_bytes])  # part of a batch behind it is ignored
    validated = assign_in_place(batch, rules, next_offset, leader_epoch, result.max_timestamp, now_ms)
    return validated._replace(
        is_rebuilt=result.is_rebuilt, conversion_ns=result.conversion_ns, temporary_bytes=result.temporary_bytes
    )


def _in_old_format(job: ValidationJob, result: ValidRecords, stored: bytes, next_offset: int) -> ValidatedBatch:
    """Move the messages to `next_offset`. The time of a LogAppendTime topic stays that of the job."""
    shift = next_offset - job.next_offset
    first = view_batch(memoryview(stored))
    if shift and first.magic == MAGIC_V0 and first.compression_type:
        raise LongValidationError
    if shift:
        stored = b"".join(
            (message.last_offset + shift).to_bytes(8, "big") + bytes(message.buffer[8:])
            for message in batches(memoryview(stored))
        )
    moved = stored_messages(stored, first, next_offset, result.log_append_time, result.is_rebuilt)
    return moved._replace(conversion_ns=result.conversion_ns, temporary_bytes=result.temporary_bytes)
