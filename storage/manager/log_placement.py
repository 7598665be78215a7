"""Orders the log directories for a new log: the preferred one alone, else those with the fewest logs first, and full
ones last.

Kafka: LogManager.nextLogDirs, LogManager.maybeUpdatePreferredLogDir.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.disk.log_dir import LogDir


PREFERRED_MAX: Final = 20_000
"""Partitions with a preferred directory. A client may name one for partitions that are created later, or never."""


class LogPlacement:
    """The preferred directories of partitions whose log is not created yet: those of the `PREFERRED_MAX` that were
    named last.
    """

    __slots__ = ("_log_dirs", "_preferred")

    def __init__(self, log_dirs: Sequence[LogDir]) -> None:
        self._log_dirs = log_dirs
        self._preferred: dict[TopicPartition, str] = {}

    def prefer(self, topic_partition: TopicPartition, path: str) -> None:
        """Create the partition's next log in this directory. The partition named first may be forgotten for it."""
        self._preferred.pop(topic_partition, None)  # so that it becomes the last one
        self._preferred[topic_partition] = path
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def on_created(self, topic_partition: TopicPartition) -> None:
        """Forget the preferred directory after the log was created."""
        self._preferred.pop(topic_partition, None)

    def allows(self, topic_partition: TopicPartition, log_dir: LogDir) -> bool:
        """Whether no other directory is preferred for the partition."""
        return self._preferred.get(topic_partition, log_dir.path) == log_dir.path

    def dirs_for(self, topic_partition: TopicPartition, used: Iterable[LogDir]) -> list[LogDir]:
        """The directories for a new log, at least one, in the order in which to try them. `used`: the directory of each
        log, including future logs.

        Raises: KafkaError KAFKA_STORAGE_ERROR when no directory, or not the preferred one, is online.
        """
        live = [log_dir for log_dir in self._log_dirs if log_dir.is_online]
        preferred = self._preferred.get(topic_partition)
        if preferred is not None:
            live = [log_dir for log_dir in live if log_dir.path == preferred]
        if not live:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No log directory is online for {topic_partition}")
        if len(live) == 1:
            return live
        counts = Counter(log_dir.path for log_dir in used)
        return sorted(live, key=lambda log_dir: (log_dir.space.is_full, counts[log_dir.path]))
