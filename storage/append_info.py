"""What goes into and comes out of an append.

Kafka: AppendOrigin, LogAppendInfo and RecordValidationException.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from odradek.protocol.errors import ErrorCode, KafkaError


class AppendOrigin(Enum):
    """Who appends; it decides how much of the producer state is checked."""

    CLIENT = "client"
    """A producer: everything is checked."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator: epochs are checked, sequences do not exist, control batches are allowed."""
    REPLICATION = "replication"
    """Fetched from a leader, which has checked everything."""


@dataclass(slots=True, kw_only=True)
class LogAppendInfo:
    """The answer to an append."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    num_messages: int = 0
    num_batches: int = 0
    size_in_bytes: int = 0
    last_leader_epoch: int = -1
    duplicate: bool = False
    """The batch had been appended before; the offsets are those of the first time and nothing was written."""
    flush_required: bool = False
    """`flush.messages` asks for an fsync before the append counts: answer from
    `UnifiedLog.when_flushed(last_offset + 1)`. The append itself does not wait, for an fsync would stall the loop. It
    holds for a duplicate as well: what the first append wrote may not be there yet."""

    @classmethod
    def of_nothing(cls, log_start_offset: int) -> LogAppendInfo:
        """There was no whole batch in what was sent."""
        return cls(first_offset=-1, last_offset=-1, max_timestamp=-1, log_start_offset=log_start_offset)


class UnexpectedAppendOffsetError(KafkaError):
    """A follower was given records that begin below its log end."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class RecordValidationError(KafkaError):
    """Some records of a batch were refused. `record_errors` pairs each one's index in the batch with the reason."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
