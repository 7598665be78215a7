"""Parameters and results of the replica manager: values that handlers, waiting operations and tests share.

Kafka: LogAppendResult, LogDeleteRecordsResult, LogReadResult, FetchParams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.broker.fetch.fetch_session import NO_PREFERRED_REPLICA
from odradek.broker.partition.replica import NO_BROKER_EPOCH
from odradek.protocol.errors import ErrorCode
from odradek.storage.append_info import UNKNOWN_LOG_APPEND_INFO, LogAppendInfo

if TYPE_CHECKING:
    from odradek.broker.fetch.fetch_session import PartitionFetch
    from odradek.broker.fetch.replica_selector import ClientMetadata
    from odradek.storage.segment.fetch_data import FetchDataInfo, FetchIsolation

EXPECTED_APPEND_ERRORS = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
"""Errors that clients cause; other errors of an append are logged."""

EXPECTED_READ_ERRORS = frozenset(
    (
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""Errors of a read that readers meet in normal operation; others count as failed fetch requests."""


@dataclass(slots=True)
class LogAppendResult:
    """One partition's part of a Produce answer."""

    info: LogAppendInfo = UNKNOWN_LOG_APPEND_INFO
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()

    @property
    def required_offset(self) -> int:
        """What the high watermark must reach before acks=-1 is answered."""
        return self.info.last_offset + 1


@dataclass(slots=True, kw_only=True)
class LogDeleteRecordsResult:
    """One partition's part of a DeleteRecords answer."""

    requested_offset: int = -1
    low_watermark: int = -1
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True, kw_only=True)
class FetchParams:
    """Parameters of a whole Fetch. `replica_id` is -1 for a consumer. `replica_epoch` is a follower's broker epoch, -1
    if it names none. `client` is set for consumers that can be sent to another replica (v11 on). Never changed: a
    frozen dataclass takes five times as long to make.
    """

    replica_id: int
    replica_epoch: int = NO_BROKER_EPOCH
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation
    leader_only: bool
    hard_max_bytes: bool  # Fetch v0-2: an oversize first batch is not returned
    client: ClientMetadata | None = None
    is_from_follower: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_from_follower = self.replica_id >= 0


@dataclass(slots=True)
class LogReadResult:
    """One partition of a Fetch answer. Offsets are -1 where unknown. With a preferred replica there are no records.
    Never changed, as `FetchParams`.
    """

    fetch: PartitionFetch
    error: ErrorCode = ErrorCode.NONE
    fetched: FetchDataInfo | None = None
    diverging_epoch: tuple[int, int] | None = None
    high_watermark: int = -1
    log_start_offset: int = -1
    last_stable_offset: int = -1
    size_in_bytes: int = 0
    """Of the records of `fetched`."""
    preferred_read_replica: int = NO_PREFERRED_REPLICA

    @property
    def is_sent(self) -> bool:
        """Whether the session has sent all of this already, so that its next answer omits the partition; the same rule
        as in `PartitionFetch.note_answer`.
        """
        return (
            self.error == ErrorCode.NONE
            and self.high_watermark == self.fetch.sent_high_watermark
            and self.log_start_offset == self.fetch.sent_log_start_offset
            and self.diverging_epoch is None
            and self.preferred_read_replica == NO_PREFERRED_REPLICA
            and not self.size_in_bytes
        )
