"""The first dirty offset of each log: `cleaner-offset-checkpoint`, one file in each log directory.

The offsets are kept in memory and written after every change. A log without an entry was never compacted.

Invariants: a file has entries of existing logs only; an entry is updated only after the compacted segments are on the
disk (`segment_swap` syncs their names). Otherwise old values would stay in the part that counts as clean, while the
tombstones that hide them are removed.

Kafka: LogCleanerManager.allCleanerCheckpoints, LogCleanerManager.updateCheckpoints,
LogCleanerManager.alterCheckpointDir, LogCleanerManager.maybeTruncateCheckpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.log import log_checkpoints

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.disk.log_dir import LogDir


class CleanerCheckpoints:
    """The checkpoints of all log directories."""

    __slots__ = ("_logs", "_offsets")

    def __init__(self, logs: Container[TopicPartition]) -> None:
        """`logs`: the existing logs, a live view."""
        self._logs = logs
        self._offsets: dict[str, dict[TopicPartition, int]] = {}

    def load(self, log_dirs: Iterable[LogDir]) -> None:
        """Read the files, after the directories are locked."""
        for log_dir in log_dirs:
            self._offsets[log_dir.path] = log_checkpoints.read(log_dir, checkpoints.CLEANER_OFFSET_FILE)

    def offset_of(self, log_dir: LogDir, topic_partition: TopicPartition) -> int | None:
        """The first offset that is not compacted; None if the log was never compacted."""
        return self._offsets.get(log_dir.path, {}).get(topic_partition)

    def update(self, log_dir: LogDir, topic_partition: TopicPartition, offset: int) -> None:
        offsets = self._offsets.get(log_dir.path)
        if offsets is not None:
            offsets[topic_partition] = offset
            self._write(log_dir)

    def remove(self, log_dir: LogDir, topic_partition: TopicPartition) -> int | None:
        """Remove the entry of a log; returns it."""
        offset = self._offsets.get(log_dir.path, {}).pop(topic_partition, None)
        if offset is not None:
            self._write(log_dir)
        return offset

    def truncate(self, log_dir: LogDir, topic_partition: TopicPartition, offset: int) -> None:
        """Lower the entry of a truncated log to `offset`: everything above counts as dirty."""
        if (self.offset_of(log_dir, topic_partition) or 0) > offset:
            self.update(log_dir, topic_partition, offset)

    def forget_dir(self, log_dir: LogDir) -> None:
        """Drop the entries of a failed directory; the next start reads its file."""
        self._offsets.pop(log_dir.path, None)

    def _write(self, log_dir: LogDir) -> None:
        log_dir.sync_queue.write(
            log_dir.file(checkpoints.CLEANER_OFFSET_FILE),
            lambda: checkpoints.encode_offsets(
                {tp: offset for tp, offset in self._offsets.get(log_dir.path, {}).items() if tp in self._logs}
            ),
        )
