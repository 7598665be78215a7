"""What a start finds in a log directory: which logs lie there, and what the last stop has written down of them.

A directory's name says what it holds:

    topic-partition                     a log
    topic-partition.<uuid>-future       a log that a move is filling
    topic-partition.<uuid>-delete       what was deleted and not yet removed
    topic-partition.<uuid>-stray        what the controller did not know; never touched again

Invariants: the clean-shutdown marker is taken before anything else is read, so that a start that dies is not clean; a
directory that is none of these stops the start, because nobody knows whose it is; files are passed over.

Kafka: LogManager.loadLogs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLog:
    """A log's directory, and the suffix that says what has become of it: `marker`, empty for a log in use."""

    path: str
    topic_partition: TopicPartition
    marker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastStop:
    """What the last stop has said about the logs of a directory."""

    was_clean: bool
    recovery_points: Mapping[TopicPartition, int]
    log_start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]


def take_last_stop(log_dir: LogDir) -> LastStop:
    """Read it; a clean stop is believed once."""
    return LastStop(
        was_clean=log_dir.take_clean_shutdown(),
        recovery_points=log_checkpoints.read(log_dir, checkpoints.RECOVERY_POINT_FILE),
        log_start_offsets=log_checkpoints.read(log_dir, checkpoints.LOG_START_OFFSET_FILE),
        high_watermarks=log_checkpoints.read(log_dir, checkpoints.HIGH_WATERMARK_FILE),
    )


def stored_logs(log_dir: LogDir) -> Iterator[StoredLog]:
    """The logs' directories, by name. Raises LogDirError at one that is not a log's."""
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
) -> UnifiedLog:
    """Load the log at `path`, or make it. Raises LogDirError when what is there cannot be a log."""
    try:
        return load_log(
            path,
            topic_partition,
            config,
            log_dir,
            environment,
            log_start_offset=0 if last_stop is None else last_stop.log_start_offsets.get(topic_partition, 0),
            recovery_point=0 if last_stop is None else last_stop.recovery_points.get(topic_partition, 0),
            had_clean_shutdown=last_stop is not None and last_stop.was_clean,
            recovered=recovered,
            topic_id=topic_id,
        )
    except (KafkaError, CorruptRecordError) as error:
        raise LogDirError(f"The log in {path} cannot be loaded: {error}") from error
