"""How far each log has been compacted: `cleaner-offset-checkpoint`, one file in each log directory.

Kept in memory and written after every change. An entry is the first offset that has not been compacted; a log without
one has not been compacted at all.

Invariants: a file names only logs there are; it never tells of a compaction that is not on the disk (`segment_swap`
syncs the new segments' names before it is noted here), because a log would keep its old values in the part that is
called clean, and lose the tombstones which hide them.

Kafka: the checkpoint half of LogCleanerManager.
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
        """`logs`: those there are, now and later."""
        self._logs = logs
        self._offsets: dict[str, dict[TopicPartition, int]] = {}

    def load(self, log_dirs: Iterable[LogDir]) -> None:
        """Read them, once the directories are ours."""
        for log_dir in log_dirs:
            self._offsets[log_dir.path] = log_checkpoints.read(log_dir, checkpoints.CLEANER_OFFSET_FILE)

    def offset_of(self, log_dir: LogDir, topic_partition: TopicPartition) -> int | None:
        """The first offset that has not been compacted; None if none has."""
        return self._offsets.get(log_dir.path, {}).get(topic_partition)

    def update(self, log_dir: LogDir, topic_partition: TopicPartition, offset: int) -> None:
        offsets = self._offsets.get(log_dir.path)
        if offsets is not None:
            offsets[topic_partition] = offset
            self._write(log_dir)

    def remove(self, log_dir: LogDir, topic_partition: TopicPartition) -> int | None:
        """Forget a log; returns what its entry said."""
        offset = self._offsets.get(log_dir.path, {}).pop(topic_partition, None)
        if offset is not None:
            self._write(log_dir)
        return offset

    def truncate(self, log_dir: LogDir, topic_partition: TopicPartition, offset: int) -> None:
        """The log was cut: at `offset` at the latest, everything is to be compacted anew."""
        if (self.offset_of(log_dir, topic_partition) or 0) > offset:
            self.update(log_dir, topic_partition, offset)

    def forget_dir(self, log_dir: LogDir) -> None:
        """The directory has failed: what is written there is read at the next start."""
        self._offsets.pop(log_dir.path, None)

    def _write(self, log_dir: LogDir) -> None:
        log_dir.sync_queue.write(
            log_dir.file(checkpoints.CLEANER_OFFSET_FILE),
            lambda: checkpoints.encode_offsets(
                {tp: offset for tp, offset in self._offsets.get(log_dir.path, {}).items() if tp in self._logs}
            ),
        )
