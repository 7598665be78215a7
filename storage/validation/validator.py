"""Validates appended batches, and assigns their offsets on the leader.

    source codec -> target codec             treatment
    ---------------------------------------  ------------------------------------------------------------------
    same, magic 2, inner offsets 0..n-1      in place: base offset and leader epoch are set, outside the CRC;
                                             timestamp type and max timestamp too if they change, with a new CRC
    control batch, uncompressed              in place, whatever the target
    another codec, gaps in offsets, magic<2  decoded and rebuilt with the target codec
    any, if written in an old format         see `old_formats`

The header of a batch is always checked. Its records are decoded only where needed: for the keys of a compacted topic,
for timestamp limits, for a rebuild, or always with `odradek.validate.records=always`. Without decoding, the max
timestamp of the header is used if it is near the present, else it is computed (`max_timestamp`). This is a documented
difference to Apache Kafka, which decodes all records.

Invariants: nothing here changes a log or the given bytes; the parts of the result together are one batch of magic 2, or
messages of an old format, with a valid CRC; a refused append raises.

Kafka: LogValidator, UnifiedLog.analyzeAndValidateRecords.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.batch import RecordBatch, batches
from odradek.protocol.records.builder import IllegalBatchError
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.convert import rebuild
from odradek.protocol.records.layout import (
    BATCH_OVERHEAD,
    COMPRESSION_MASK,
    CONTROL_MASK,
    CREATE_TIME,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_TIMESTAMP,
    PREFIX,
    PREFIX_SIZE,
    TIMESTAMP_TYPE_MASK,
)
from odradek.storage.append_info import (
    CLIENT,
    REPLICATION,
    InvalidMagicError,
    InvalidOffsetOrSequenceError,
    UnexpectedAppendOffsetError,
)
from odradek.storage.validation.max_timestamp import TRUSTED_DISTANCE_MS, max_timestamp_of
from odradek.storage.validation.old_formats import assign_in_old_format
from odradek.storage.validation.record_checks import has_bad_records, raise_record_errors, records_of
from odradek.storage.validation.validation_cost import check_rebuild, check_separation, walk
from odradek.storage.validation.validation_rules import ValidatedBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.records.batch import AnyBatch
    from odradek.protocol.records.record_walks import RecordsSummary
    from odradek.storage.append_info import AppendOrigin
    from odradek.storage.validation.validation_rules import ValidationRules

    Bytes = bytes | bytearray | memoryview

NO_COMPRESSION: Final = int(CompressionType.NONE)
ZSTD: Final = int(CompressionType.ZSTD)
"""To look up a member of an enum takes as long as a call."""


def analyze(
    records: memoryview, rules: ValidationRules, origin: AppendOrigin, *, may_take_long: bool = True
) -> list[AnyBatch]:
    """The complete batches in the bytes, with valid CRCs; a partial one at the end is ignored.

    Raises: KafkaError; LongValidationError unless it may take long.
    """
    found: list[AnyBatch]
    size = len(records)
    if (
        size >= BATCH_OVERHEAD
        and (single := RecordBatch(records)).magic == MAGIC_V2
        and single.length + LOG_OVERHEAD == size
    ):
        found = [single]
    else:
        if not may_take_long:
            check_separation(records)
        found = list(batches(records))
    is_client = origin is CLIENT
    for batch in found:
        if is_client and batch.magic >= MAGIC_V2 and batch.base_offset != 0:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"The baseOffset of the record batch in the append to {rules.partition} should be 0, but it is "
                f"{batch.base_offset}",
            )
        if origin is not REPLICATION and LOG_OVERHEAD + batch.length > rules.max_message_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {rules.partition} is {batch.size_in_bytes} bytes which "
                f"exceeds the maximum configured value of {rules.max_message_bytes}.",
            )
        if not batch.is_valid():
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record is corrupt (stored crc = {batch.crc}) in topic partition {rules.partition}.",
            )
    return found


def validate_and_assign(
    found: list[AnyBatch],
    rules: ValidationRules,
    origin: AppendOrigin,
    *,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    may_take_long: bool = True,
    monotonic_ns: Callable[[], int] = lambda: 0,
) -> ValidatedBatch:
    """Validate batches on the leader and assign offsets from `next_offset` on. `found`: from `analyze`.

    Raises: KafkaError; RecordValidationError; LongValidationError unless it may take long. Kafka:
    LogValidator.validateMessagesAndAssignOffsets.
    """
    first = found[0]
    source_codec = first.attributes & COMPRESSION_MASK if len(found) == 1 else _last_codec(found)
    if source_codec > ZSTD:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Unknown compression type id: {source_codec}")
    target_codec = source_codec if rules.target_codec is None else rules.target_codec
    if target_codec == ZSTD and not rules.allows_zstd:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "Produce requests to inter.broker.protocol.version < 2.1 broker are not allowed to use ZStandard "
            "compression",
        )
    if len(found) > 1 and (first.magic >= MAGIC_V2 or source_codec != NO_COMPRESSION):
        raise KafkaError(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
    in_place = source_codec == target_codec or (first.is_control and source_codec == NO_COMPRESSION)
    if rules.record_version < MAGIC_V2 and first.is_transactional and in_place and source_codec == NO_COMPRESSION:
        # Before all other checks, as in Apache Kafka, where the builder of the new records raises it.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Transactional records are not supported for magic {rules.record_version}",
        )
    is_client = origin is CLIENT
    for batch in found:
        if batch.magic != first.magic:
            raise _other_magic(first, batch, rules)
        if isinstance(batch, RecordBatch):  # Kafka: LogValidator.validateBatch
            if is_client and (
                not 0 <= batch.last_offset_delta == batch.record_count - 1
                or batch.attributes & CONTROL_MASK
                or batch.producer_id >= 0 > batch.base_sequence
            ):
                raise _invalid_header(batch, rules)
            if rules.record_version < MAGIC_V2 and (batch.is_transactional or batch.has_producer_id):
                raise _unsupported_in_old_format(batch, rules)
    if not (in_place and rules.record_version >= MAGIC_V2 and isinstance(first, RecordBatch)):
        build = (
            partial(assign_in_old_format, found, rules, source_codec, target_codec, next_offset, now_ms)
            if rules.record_version < MAGIC_V2
            else partial(_rebuild, found, rules, source_codec, target_codec, next_offset, leader_epoch, now_ms)
        )
        return _timed(build, found, may_take_long, monotonic_ns)
    timestamp_type = LOG_APPEND_TIME if first.attributes & TIMESTAMP_TYPE_MASK else CREATE_TIME
    has_wrong_time = timestamp_type == LOG_APPEND_TIME and (
        rules.timestamp_type == LOG_APPEND_TIME or first.max_timestamp == NO_TIMESTAMP
    )
    max_timestamp = first.max_timestamp
    if has_wrong_time or (rules.walk_records and is_client):
        summary = _checked_records(first, rules, source_codec, now_ms, has_wrong_time, may_take_long)
        if source_codec != NO_COMPRESSION and not summary.has_sequential_offsets:
            build = partial(_rebuild, found, rules, source_codec, target_codec, next_offset, leader_epoch, now_ms)
            return _timed(build, found, may_take_long, monotonic_ns)
        max_timestamp = max(NO_TIMESTAMP, summary.max_timestamp) if timestamp_type == CREATE_TIME else max_timestamp
    elif (
        is_client
        and rules.timestamp_type == timestamp_type == CREATE_TIME
        and not (
            -TRUSTED_DISTANCE_MS <= now_ms - max_timestamp <= TRUSTED_DISTANCE_MS
            and first.base_timestamp <= max_timestamp
        )
    ):
        max_timestamp = max_timestamp_of(first)
    return assign_in_place(first, rules, next_offset, leader_epoch, max_timestamp, now_ms)


def _timed(
    build: Callable[[], ValidatedBatch], found: list[AnyBatch], may_take_long: bool, monotonic_ns: Callable[[], int]
) -> ValidatedBatch:
    """The result of writing the records anew, with its time. Raises: LongValidationError unless it may take long."""
    if not may_take_long:
        check_rebuild(found)
    began_ns = monotonic_ns()
    built = build()
    return built._replace(conversion_ns=monotonic_ns() - began_ns if built.is_rebuilt else 0)


def check_replicated_offsets(
    found: list[AnyBatch], log_end_offset: int, partition: object, log_start_offset: int
) -> None:
    """Check that the offsets of a leader's batches increase and begin at or above the log end. Raises KafkaError."""
    last_offset = -1
    for batch in found:
        previous, last_offset = last_offset, batch.last_offset
        if last_offset <= previous:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Out of order offsets found in append to {partition}: {[other.last_offset for other in found]}",
            )
    first = found[0]
    is_exact = first.magic >= MAGIC_V2  # the first offset of an old compressed message is inside it
    offset = first.base_offset if is_exact else first.last_offset
    if offset < log_end_offset:
        which = "First offset" if is_exact else "Last offset of the first batch"
        raise UnexpectedAppendOffsetError(
            f"Unexpected offset in append to {partition}. {which} {offset} is less than the next offset "
            f"{log_end_offset}. Last offset in append: {last_offset}. Log start offset = {log_start_offset}",
            first.base_offset,
            last_offset,
        )


def _last_codec(found: list[AnyBatch]) -> int:
    """The codec of the last compressed batch."""
    codec = 0
    for batch in found:
        codec = batch.compression_type or codec
    return codec


def _other_magic(first: AnyBatch, batch: AnyBatch, rules: ValidationRules) -> KafkaError:
    return InvalidMagicError(
        ErrorCode.INVALID_RECORD,
        f"Batch magic {batch.magic} is not the same as the first batch's magic byte {first.magic} in topic "
        f"partition {rules.partition}",
    )


def _invalid_header(batch: RecordBatch, rules: ValidationRules) -> KafkaError:
    """The error of a client's batch whose offsets and count do not fit, that is a control batch, or whose producer has
    no sequence.
    """
    delta, count = batch.last_offset_delta, batch.record_count
    error: type[KafkaError] = InvalidOffsetOrSequenceError
    if delta < 0:
        problem = f"Batch has an invalid offset range: [{batch.base_offset}, {batch.last_offset}]"
    elif count <= 0:
        problem = f"Invalid reported count for record batch: {count}"
    elif count != delta + 1:
        problem = (
            f"Inconsistent batch offset range [{batch.base_offset}, {batch.last_offset}] and count of records {count}"
        )
    elif batch.attributes & CONTROL_MASK:
        problem, error = "Clients are not allowed to write control records", KafkaError
    else:
        problem = f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
    return error(ErrorCode.INVALID_RECORD, f"{problem} in topic partition {rules.partition}")


def _unsupported_in_old_format(batch: RecordBatch, rules: ValidationRules) -> KafkaError:
    kind = "Transactional" if batch.is_transactional else "Idempotent"
    return KafkaError(
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        f"{kind} records cannot be used with magic version {rules.record_version}",
    )


def _checked_records(
    batch: RecordBatch,
    rules: ValidationRules,
    source_codec: int,
    now_ms: int,
    has_wrong_time: bool,
    may_take_long: bool,
) -> RecordsSummary:
    """Walk over the records, and over those of an invalid batch again for their errors.

    Raises: RecordValidationError; LongValidationError if that, or the rebuild of a batch with gaps, takes long.
    """
    most = rules.max_decompressed_bytes
    summary = batch.summary(most) if may_take_long else walk(batch, most)
    is_invalid = has_wrong_time or has_bad_records(batch, summary, rules, now_ms)
    if not may_take_long and (is_invalid or (source_codec and not summary.has_sequential_offsets)):
        check_rebuild([batch])
    if is_invalid:
        raise_record_errors([batch], rules, now_ms)
    return summary


def assign_in_place(
    batch: RecordBatch,
    rules: ValidationRules,
    next_offset: int,
    leader_epoch: int,
    max_timestamp: int,
    now_ms: int,
) -> ValidatedBatch:
    """Assign what stands in the header: offsets, leader epoch, and the timestamp type with the max timestamp."""
    buffer = batch.buffer
    last_offset = next_offset + batch.last_offset_delta
    size = len(buffer)
    log_append_time = NO_TIMESTAMP
    if rules.timestamp_type == LOG_APPEND_TIME:
        max_timestamp = log_append_time = now_ms
    parts: list[Bytes]
    timestamp_type = LOG_APPEND_TIME if batch.attributes & TIMESTAMP_TYPE_MASK else CREATE_TIME
    if max_timestamp == batch.max_timestamp and rules.timestamp_type == timestamp_type:
        parts = [PREFIX.pack(next_offset, batch.length, leader_epoch), buffer[PREFIX_SIZE:]]
    else:
        header = batch.header(
            base_offset=next_offset,
            partition_leader_epoch=leader_epoch,
            timestamp_type=rules.timestamp_type,
            max_timestamp=max_timestamp,
        )
        parts = [header, buffer[BATCH_OVERHEAD:]]
    values = (batch, parts, size, next_offset, last_offset, max_timestamp, log_append_time, (), False, 0, 0)
    return new_tuple(ValidatedBatch, values)


def _rebuild(
    found: list[AnyBatch],
    rules: ValidationRules,
    source_codec: int,
    target_codec: int,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> ValidatedBatch:
    """Decode all records and build one batch with the target codec.

    Raises: KafkaError; UNKNOWN_SERVER_ERROR, as Apache Kafka answers, if the builder refuses what the client's header
    or records hold. Kafka: LogValidator.buildRecordsAndAssignOffsets.
    """
    raise_record_errors(found, rules, now_ms)
    is_append_time = rules.timestamp_type == LOG_APPEND_TIME
    sizes: list[int] = []
    try:
        built = rebuild(
            (record for batch in found for record in records_of(batch, rules)),
            base_offset=next_offset,
            compression_type=target_codec,
            level=rules.level,
            timestamp_type=rules.timestamp_type,
            log_append_time=now_ms if is_append_time else NO_TIMESTAMP,
            like=found[0],
            partition_leader_epoch=leader_epoch,
            sizes=sizes,
        )
    except IllegalBatchError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    if len(built) > rules.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {len(built)} bytes in append to partition {rules.partition} which exceeds the "
            f"maximum configured size of {rules.max_message_bytes}.",
        )
    batch = RecordBatch(memoryview(built))
    return ValidatedBatch(
        batch,
        [built],
        len(built),
        next_offset,
        batch.last_offset,
        batch.max_timestamp,
        now_ms if is_append_time else NO_TIMESTAMP,
        is_rebuilt=True,
        temporary_bytes=sum(sizes) + (_unpacked_size(found, sizes) if source_codec or target_codec else 0),
    )


def _unpacked_size(found: list[AnyBatch], built: list[int]) -> int:
    """The records as they are checked before they are written anew: with a header of magic 2 for each batch. For
    compressed ones the size of what they became, which differs by the offsets and the distances of timestamps.
    """
    if found[0].attributes & COMPRESSION_MASK:
        return sum(built)
    return sum(batch.size_in_bytes + (0 if batch.magic >= MAGIC_V2 else BATCH_OVERHEAD) for batch in found)
