"""The offset checkpoints of a log directory: writing and reading them.

    file                                 an entry for
    recovery-point-offset-checkpoint     every log
    log-start-offset-checkpoint          each log that begins above the base offset of its first segment
    replication-offset-checkpoint        every log: its high watermark

While the broker runs, a checkpoint goes through the directory's sync queue. At shutdown the queue is drained and the
checkpoint is written directly.

Invariant: a damaged or missing checkpoint counts as empty; recovery then only scans more.

Kafka: LogManager.checkpointRecoveryOffsetsInDir, LogManager.checkpointLogStartOffsetsInDir,
ReplicaManager.checkpointHighWatermarks.
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
"""Returns the logs of a directory. It is called when the file is written, so that many changes make one write."""


def queue_recovery_points(log_dir: LogDir, logs: Logs) -> None:
    _queue(log_dir, checkpoints.RECOVERY_POINT_FILE, lambda: _recovery_points(logs()))


def queue_log_start_offsets(log_dir: LogDir, logs: Logs) -> None:
    _queue(log_dir, checkpoints.LOG_START_OFFSET_FILE, lambda: _log_start_offsets(logs()))


def queue_high_watermarks(log_dir: LogDir, logs: Logs) -> None:
    _queue(
        log_dir, checkpoints.HIGH_WATERMARK_FILE, lambda: {log.topic_partition: log.high_watermark for log in logs()}
    )


def write_final(log_dir: LogDir, logs: Sequence[UnifiedLog], fs: FileSystem) -> None:
    """Write recovery points and log start offsets synchronously, for shutdown."""
    log_dir.sync_queue.drain()
    for name, offsets in (
        (checkpoints.RECOVERY_POINT_FILE, _recovery_points(logs)),
        (checkpoints.LOG_START_OFFSET_FILE, _log_start_offsets(logs)),
    ):
        fs.replace_file(log_dir.file(name), checkpoints.encode_offsets(offsets))


def read(log_dir: LogDir, name: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint; empty if the file is missing or damaged."""
    try:
        return checkpoints.read_offsets(log_dir.file(name))
    except checkpoints.CheckpointError as error:
        logger.warning("Ignoring a damaged checkpoint; the logs start as if it were empty: %s", error)
        return {}


def _recovery_points(logs: Iterable[UnifiedLog]) -> dict[TopicPartition, int]:
    return {log.topic_partition: log.flusher.checkpoint_offset for log in logs}


def _log_start_offsets(logs: Iterable[UnifiedLog]) -> dict[TopicPartition, int]:
    return {
        log.topic_partition: log.log_start_offset
        for log in logs
        if log.log_start_offset > log.segments.first.base_offset
    }


def _queue(log_dir: LogDir, name: str, offsets: Callable[[], Mapping[TopicPartition, int]]) -> None:
    log_dir.sync_queue.write(log_dir.file(name), lambda: checkpoints.encode_offsets(offsets()))
