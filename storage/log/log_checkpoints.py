"""The offset checkpoints of a log directory: what its logs put there, and what a start finds.

    file                                 an entry for
    recovery-point-offset-checkpoint     every log
    log-start-offset-checkpoint          each log that begins inside a segment: otherwise the file name says it
    replication-offset-checkpoint        every log: its high watermark

While the broker runs, a checkpoint is queued and reaches the disk with the other small files of its directory; at the
end, it is written at once, in place of whatever is queued still.

Invariant: a damaged or missing checkpoint counts as empty, which only makes recovery look further back.

Kafka: LogManager.checkpointRecoveryOffsetsInDir and checkpointLogStartOffsetsInDir.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.storage.disk import checkpoint_files as checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)


Logs = Callable[[], "Iterable[UnifiedLog]"]
"""The logs of a directory, as they will be when the checkpoint is put together: many changes in a row make one file."""


def queue_recovery_points(log_dir: LogDir, logs: Logs) -> None:
    _queue(log_dir, checkpoints.RECOVERY_POINT_FILE, lambda: _recovery_points(logs()))


def queue_log_start_offsets(log_dir: LogDir, logs: Logs) -> None:
    _queue(log_dir, checkpoints.LOG_START_OFFSET_FILE, lambda: _log_start_offsets(logs()))


def queue_high_watermarks(log_dir: LogDir, logs: Logs) -> None:
    _queue(
        log_dir, checkpoints.HIGH_WATERMARK_FILE, lambda: {log.topic_partition: log.high_watermark for log in logs()}
    )


def write_final(log_dir: LogDir, logs: Sequence[UnifiedLog], fs: FileSystem) -> None:
    """Recovery points and log start offsets, synchronously."""
    log_dir.sync_queue.drain()
    for name, offsets in (
        (checkpoints.RECOVERY_POINT_FILE, _recovery_points(logs)),
        (checkpoints.LOG_START_OFFSET_FILE, _log_start_offsets(logs)),
    ):
        fs.replace_file(log_dir.file(name), checkpoints.encode_offsets(offsets))


def read(log_dir: LogDir, name: str) -> dict[TopicPartition, int]:
    """A checkpoint's offsets; none if it is missing or damaged."""
    try:
        return checkpoints.read_offsets(log_dir.file(name))
    except checkpoints.CheckpointError as error:
        logger.warning("Ignoring a checkpoint: %s", error)
        return {}


def _recovery_points(logs: Iterable[UnifiedLog]) -> dict[TopicPartition, int]:
    return {log.topic_partition: log.flusher.promised for log in logs}


def _log_start_offsets(logs: Iterable[UnifiedLog]) -> dict[TopicPartition, int]:
    return {
        log.topic_partition: log.log_start_offset
        for log in logs
        if log.log_start_offset > log.segments.first.base_offset
    }


def _queue(log_dir: LogDir, name: str, offsets: Callable[[], Mapping[TopicPartition, int]]) -> None:
    log_dir.sync_queue.write(log_dir.file(name), lambda: checkpoints.encode_offsets(offsets()))
