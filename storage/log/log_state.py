"""The parts of one log that appends, truncations and retention change together.

`UnifiedLog` owns one and is the interface for other packages. The modules `log_append`, `log_start`,
`segment_deletion`, `segment_swap` and `truncation` change several parts at once: they are functions on a LogState.

Invariants: the parts are never replaced; a roll writes a producer snapshot at the base offset of the new segment; an
I/O error takes the whole directory offline, a lack of space does not.

Kafka: UnifiedLog.roll, LocalLog.maybeHandleIOException.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.errors import CorruptRecordError
from odradek.storage.disk.disk_space import DiskFullError, LogDirFullError
from odradek.storage.log.watermarks import Watermarks
from odradek.storage.producers.producer_checks import ProducerChecks
from odradek.storage.segment.flusher import LogFlusher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.leader_epochs import LeaderEpochs
    from odradek.storage.log.local_log import LocalLog
    from odradek.storage.producers.producer_state_manager import ProducerStateManager
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments


class LogState:
    """The segments of a log and the state that follows from their records."""

    __slots__ = ("checks", "flusher", "leader_epochs", "local_log", "log_dir", "producers", "watermarks")

    def __init__(
        self,
        local_log: LocalLog,
        log_dir: LogDir,
        leader_epochs: LeaderEpochs,
        producers: ProducerStateManager,
        *,
        log_start_offset: int,
        recovery_point: int,
    ) -> None:
        self.local_log = local_log
        self.log_dir = log_dir
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.checks = ProducerChecks(producers)
        self.watermarks = Watermarks(local_log, producers, log_start_offset)
        self.flusher = LogFlusher(
            local_log.dir, local_log.segments, recovery_point, local_log.environment, self._on_flush_failure
        )

    @property
    def topic_partition(self) -> TopicPartition:
        return self.local_log.topic_partition

    @property
    def segments(self) -> LogSegments:
        return self.local_log.segments

    @property
    def unflushed_messages(self) -> int:
        return self.local_log.log_end_offset - self.flusher.recovery_point

    # -- rolling -----------------------------------------------------------------------------------

    def roll(self) -> LogSegment:
        """Begin a new segment at the log end. Raises the errors of `disk`."""
        with self.disk("rolling a segment"):
            return self.roll_for(0)

    def roll_for(self, expected_offset: int) -> LogSegment:
        """Begin a new segment at the log end, or at `expected_offset` if that is larger.

        Raises: OSError; DiskFullError, which leaves the active segment unchanged.
        """
        finished = self.local_log.segments.active
        segment = self.local_log.roll(expected_offset)
        # With a snapshot at its base offset, a truncation to this segment replays nothing below. It is synced with the
        # flush.
        self.producers.map_end_offset = segment.base_offset
        snapshot = self.producers.take_snapshot()
        if snapshot is not None:
            self.log_dir.sync_queue.sync_fd(self.local_log.environment.fs.open(snapshot))
        self.watermarks.on_rolled()
        self.flusher.segment_finished(finished)
        self.flusher.flush(segment.base_offset)
        return segment

    def change_dir(self, path: str) -> None:
        """Update the paths after the directory was renamed."""
        self.local_log.change_dir(path)
        self.producers.rename_dir(path)
        self.flusher.log_dir = path

    # -- errors ------------------------------------------------------------------------------------

    @contextmanager
    def disk(self, what: str) -> Iterator[None]:
        """A context for work with files: turns its errors into KafkaErrors. An I/O error takes the directory offline.

        Raises: KafkaError KAFKA_STORAGE_ERROR, or CORRUPT_MESSAGE for records that cannot be read.
        """
        if self.log_dir.failure is not None:
            self.raise_offline()
        try:
            yield
        except (CorruptRecordError, OSError) as error:
            self.raise_for(what, error)

    def raise_for(self, what: str, error: CorruptRecordError | OSError) -> NoReturn:
        """Turn an error of work with files into the errors of `disk`."""
        if isinstance(error, CorruptRecordError):
            raise KafkaError(ErrorCode(error.error_code), str(error)) from error
        if isinstance(error, DiskFullError):
            self.refuse(error)
        self.fail(what, error)

    def refuse(self, error: DiskFullError) -> NoReturn:
        """Report a full disk to the client. The write left nothing behind, so the directory stays online."""
        self.log_dir.space.ran_out(error)
        raise LogDirFullError(self.log_dir.path) from error

    def fail(self, what: str, error: OSError) -> NoReturn:
        """Take the whole directory offline after an I/O error."""
        message = f"Error while {what} for {self.topic_partition} in dir {self.log_dir.path}"
        self.log_dir.fail(message, error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

    def raise_offline(self) -> NoReturn:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"The log dir {self.log_dir.path} is already offline due to a previous IO exception.",
        )

    def _on_flush_failure(self, error: OSError) -> None:
        self.log_dir.fail(f"Error while flushing log for {self.topic_partition}", error)
