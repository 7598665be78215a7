"""Replaces a current log by its future log, at the end of a move between two log directories.

    future                              current
    topic-0.<uuid>-future               topic-0
    topic-0                             topic-0                      renamed; from here on the new log is in use
    (the name is synced)                topic-0.<uuid>-delete        renamed, and removed later

The old directory keeps its name until the new name is synced: after a loss of power, at least one of the two has the
partition's name. A process that is killed in between leaves both, and the next start refuses them with Kafka's
"Duplicate log directories", as Apache does at the same place.

Invariants: `replace` changes everything for readers and writers, or raises and changes nothing; the new log's flusher
calls back those that wait for a flush of the old log. Regions of the old log's files can be read until its directory is
removed.

Kafka: LogManager.replaceCurrentWithFutureLog.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.protocol.errors import KafkaError
from odradek.storage import log_files

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.disk.environment import Environment
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_deletions import LogDeletions

logger = logging.getLogger(__name__)


class LogMoves:
    """The replacements of one log manager."""

    __slots__ = ("_deletions", "_environment", "_replaced")

    def __init__(self, environment: Environment, deletions: LogDeletions) -> None:
        self._environment = environment
        self._deletions = deletions
        self._replaced: dict[TopicPartition, tuple[UnifiedLog, UnifiedLog]] = {}
        """(replaced log, new log): the replaced log's directory still has the partition's name."""

    def replace(self, current: UnifiedLog, future: UnifiedLog) -> None:
        """Give `future` the name and the high watermark of `current`. Call `retire` next.

        Raises: KafkaError KAFKA_STORAGE_ERROR when the future log cannot be renamed: its directory is offline then.
        """
        topic_partition = current.topic_partition
        self.finish(topic_partition)  # the log that an earlier move replaced may still have the partition's name
        path = future.log_dir.file(log_files.log_dir_name(topic_partition))
        self._deletions.free(path)
        future.rename_dir(path)
        future.update_high_watermark(current.high_watermark)
        current.flusher.hand_over(future.flusher)
        logger.info("Replaced the log of %s in %s by the one in %s", topic_partition, current.dir, future.dir)

    def retire(self, current: UnifiedLog, future: UnifiedLog) -> None:
        """Delete the replaced log, as soon as the name of the new one is synced.

        The sync does not use the sync queue, where it would wait for other files: a kill before it leaves two names.
        """
        self._replaced[current.topic_partition] = (current, future)
        fs, path = self._environment.fs, future.log_dir.path
        self._environment.io_pool.submit(
            lambda: fs.sync_dir(path), lambda failure: self._on_name_synced(current, failure)
        )

    def _on_name_synced(self, replaced: UnifiedLog, failure: OSError | None) -> None:
        current, successor = self._replaced.get(replaced.topic_partition, (None, None))
        if current is not replaced or successor is None:
            return  # deleted meanwhile
        if failure is None:
            self.finish(replaced.topic_partition)
            return
        # The new name may be lost, so that the old log must keep its name.
        del self._replaced[replaced.topic_partition]
        replaced.discard()
        successor.log_dir.fail(f"Error while renaming {successor.dir}", failure)

    def finish(self, topic_partition: TopicPartition) -> None:
        """Delete the replaced log, if it is not deleted already."""
        replaced, _ = self._replaced.pop(topic_partition, (None, None))
        if replaced is None:
            return
        if not replaced.log_dir.is_online:
            replaced.discard()
            return
        try:
            self._deletions.delete(replaced)
        except KafkaError as error:  # its directory is offline now; the new log continues
            logger.error("Could not delete the replaced log %s: %s", replaced.dir, error)

    def finish_all(self) -> None:
        """Sync the new names and delete all replaced logs, synchronously: for shutdown."""
        for replaced, successor in list(self._replaced.values()):
            try:
                self._environment.fs.sync_dir(successor.log_dir.path)
            except OSError as error:
                self._on_name_synced(replaced, error)
            else:
                self._on_name_synced(replaced, None)
