"""Reads a log directory at start: its logs, and the checkpoints of the last stop.

The name of a subdirectory determines its content:

    topic-partition                     a log
    topic-partition.<uuid>-future       the target of a move
    topic-partition.<uuid>-delete       a deleted log that is not removed yet
    topic-partition.<uuid>-stray        a log of a partition that the controller did not know; ignored

Invariants: the clean-shutdown marker is removed before anything else is read, so that a start that dies is unclean; a
subdirectory with another name refuses the start; files are ignored.

Kafka: LogManager.loadLogs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import KafkaError
from odradek.protocol.records.errors import CorruptRecordError
from odradek.storage import log_files
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.log import log_checkpoints
from odradek.storage.recovery.log_loader import load_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.producers.producer_state_manager import ProducerMemory


class StoredLog(NamedTuple):
    """A directory of a log. `marker`: the suffix of its name, such as `-delete`; empty for a log in use."""

    path: str
    topic_partition: TopicPartition
    marker: str


class LastStop(NamedTuple):
    """The checkpoints of the last stop in a log directory, and whether the stop was clean."""

    was_clean: bool
    recovery_points: Mapping[TopicPartition, int]
    log_start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    first_dirty_offsets: Mapping[TopicPartition, int]
    """Of compaction; a log whose policy has changed since may have one, too."""


def take_last_stop(log_dir: LogDir) -> LastStop:
    """Read the checkpoints of the last stop, and remove the marker of a clean one. Raises OSError."""
    return LastStop(
        was_clean=log_dir.take_clean_shutdown(),
        recovery_points=log_checkpoints.read(log_dir, checkpoints.RECOVERY_POINT_FILE),
        log_start_offsets=log_checkpoints.read(log_dir, checkpoints.LOG_START_OFFSET_FILE),
        high_watermarks=log_checkpoints.read(log_dir, checkpoints.HIGH_WATERMARK_FILE),
        first_dirty_offsets=log_checkpoints.read(log_dir, checkpoints.CLEANER_OFFSET_FILE),
    )


def stored_logs(log_dir: LogDir) -> Iterator[StoredLog]:
    """The log directories, sorted by name. Raises LogDirError for a directory with another name."""
    for entry in sorted(os.scandir(log_dir.path), key=lambda found: found.name):
        if not entry.is_dir() or entry.name in log_files.SKIPPED_DIRECTORIES:
            continue
        parsed = log_files.parse_dir_name(entry.name)
        if parsed is None:
            raise LogDirError(
                f"Found directory {entry.path}, '{entry.name}' is not in the form of topic-partition or "
                "topic-partition.uniqueId-delete (if marked for deletion). Kafka's log directories (and children) "
                "should only contain Kafka topic data."
            )
        topic_partition, marker = parsed
        yield StoredLog(path=entry.path, topic_partition=topic_partition, marker=marker)


def open_log(
    path: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    log_dir: LogDir,
    environment: Environment,
    *,
    last_stop: LastStop | None = None,
    recovered: ProducerMemory | None = None,
    topic_id: bytes | None = None,
    created_fd: int | None = None,
) -> UnifiedLog:
    """Load the log at `path`, or create it. `created_fd`: see `load_log`.

    Raises: OSError; LogDirError for a log that cannot be loaded.
    """
    try:
        return load_log(
            path,
            topic_partition,
            config,
            log_dir,
            environment,
            log_start_offset=0 if last_stop is None else last_stop.log_start_offsets.get(topic_partition, 0),
            recovery_point=0 if last_stop is None else last_stop.recovery_points.get(topic_partition, 0),
            first_dirty_offset=0 if last_stop is None else last_stop.first_dirty_offsets.get(topic_partition, 0),
            had_clean_shutdown=last_stop is not None and last_stop.was_clean,
            recovered=recovered,
            topic_id=topic_id,
            created_fd=created_fd,
        )
    except (KafkaError, CorruptRecordError) as error:
        raise LogDirError(f"The log in {path} cannot be loaded: {error}") from error
