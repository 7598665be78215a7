"""The origin of an append, its result and its errors.

Kafka: AppendOrigin, LogAppendInfo, RecordValidationException, UnexpectedAppendOffsetException.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError

NO_KEY: Final = "Compacted topic cannot accept message without key"
"""The beginning of the reason why such a record is refused."""

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""Above the base offset of a segment: what its indexes can hold."""


class AppendOrigin(Enum):
    """The source of the records. It decides how much of the producer state is checked."""

    CLIENT = "client"
    """A producer: everything is checked."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator: epochs are checked, sequences do not exist, control batches are allowed."""
    REPLICATION = "replication"
    """A fetch from the leader, which has checked everything."""


CLIENT: Final = AppendOrigin.CLIENT
REPLICATION: Final = AppendOrigin.REPLICATION
"""To look up a member of an enum takes as long as a call."""


@dataclass(slots=True, eq=False)
class LogAppendInfo:
    """The result of an append. Timestamps in ms; offsets and times are -1 where unknown."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int = -1
    log_start_offset: int = -1
    last_leader_epoch: int = -1
    records_converted: int = 0
    """Records that were written anew. Kafka: RecordValidationStats.numRecordsConverted."""
    conversion_ns: int = 0
    """How long that took. Kafka: RecordValidationStats.conversionTimeNanos."""
    temporary_bytes: int = 0
    """Memory that it took. Kafka: RecordValidationStats.temporaryMemoryBytes."""
    duplicate: bool = False
    """The batch was appended before: nothing is written, and the offsets are those of the first append."""
    is_committed: bool = False
    """The high watermark has passed the records already, because no other replica has to have them."""
    high_watermark_moved: bool = False
    """Kafka: LeaderHwChange.INCREASED."""
    flush_required: bool = False
    """`flush.messages` requires an fsync before the append is acknowledged: the caller replies in the callback of
    `UnifiedLog.when_flushed(last_offset + 1)`. The append itself does not wait, because an fsync would stall the event
    loop. A duplicate sets this too: the records of the first append may not be flushed yet."""

    @classmethod
    def unknown(cls, log_start_offset: int) -> LogAppendInfo:
        """Nothing was appended. Kafka: LogAppendInfo.unknownLogAppendInfoWithLogStartOffset."""
        return cls(first_offset=-1, last_offset=-1, max_timestamp=-1, log_start_offset=log_start_offset)


UNKNOWN_LOG_APPEND_INFO: Final = LogAppendInfo.unknown(-1)


class InvalidMagicError(KafkaError):
    """A batch has another format than the first batch of its request."""


class InvalidOffsetOrSequenceError(KafkaError):
    """A batch has an impossible range of offsets, count of records or sequence."""


class UnexpectedAppendOffsetError(KafkaError):
    """A follower received records that begin below its log end."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class RecordValidationError(KafkaError):
    """Some records of a batch are invalid. `record_errors`: (index in the batch, reason) of each."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class SegmentOffsetOverflowError(KafkaError):
    """An offset is too far above the segment's base offset to be indexed. Kafka: LogSegmentOffsetOverflowException."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class AppendedBatch(NamedTuple):
    """The properties of an appended batch that the indexes need."""

    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    size: int
