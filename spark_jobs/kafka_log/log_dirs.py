"""The partitions in log directories, and what the checkpoint files say of them.

Everything is read without a lock beside a broker that may be writing. Each checkpoint file is replaced in one step, so
that a read sees one version of it; the checkpoints and the partitions of one scan may be seconds apart, as they are
for the broker itself.

Kafka: LogManager.loadLogs, OffsetCheckpointFile.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    CheckpointError,
    read_offsets,
    read_partition_metadata,
)
from odradek.storage.log_files import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    LOG_FILE_SUFFIX,
    SKIPPED_DIRECTORIES,
    log_dir_name,
    offset_of,
    parse_dir_name,
)
from spark_jobs.kafka_log.errors import KafkaLogError, warn
from spark_jobs.kafka_log.options import ReadOptions

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
META_PROPERTIES_FILE: Final = "meta.properties"
ALL_IS_FLUSHED: Final = 2**63
"""Above every offset."""
SCANS: Final = 3
"""How often directories are listed anew when a replica was seen only under the names that it has during a move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One copy of a partition: a directory, and the checkpoints of its log directory."""

    topic: str
    partition: int
    log_dir: str
    topic_id: bytes | None
    high_watermark: int | None
    """None: the log directory has no checkpoint of high watermarks."""
    checkpointed_start: int
    """What DeleteRecords or retention has moved the log start to; 0 without an entry."""
    flushed_end: int
    """Below this offset indexes are complete: the recovery point; `ALL_IS_FLUSHED` after a clean stop."""
    elsewhere: tuple[str, ...] = ()
    """The other log directories that are read: a replica may move between them."""

    @property
    def name(self) -> str:
        return log_dir_name(TopicPartition(self.topic, self.partition))

    @property
    def path(self) -> str:
        return os.path.join(self.log_dir, self.name)


def find_replicas(options: ReadOptions, *, topics_must_exist: bool = True) -> list[Replica]:
    """The replicas that the options select, ordered by topic and partition.

    Raises: KafkaLogError if a directory cannot be read or is none of Kafka's, or if a named topic is not there.
    """
    found: dict[TopicPartition, list[Replica]] = {}
    moving: set[TopicPartition] = set()
    for _ in range(SCANS):
        found, moving = {}, set()
        for log_dir in options.log_dirs:
            _scan(log_dir, options, found, moving)
        if moving <= found.keys():
            break
    missing = [topic for topic in options.topics if not any(topic == each.topic for each in found)]
    if missing and topics_must_exist:
        raise KafkaLogError(f"topic {', '.join(missing)} is not in {', '.join(options.log_dirs)}")
    chosen: list[Replica] = []
    for tp in sorted(found):
        chosen += found[tp] if options.all_replicas else [_most_complete(found[tp])]
    return chosen


def _most_complete(replicas: Sequence[Replica]) -> Replica:
    """The replica that knows the highest high watermark: directories may be those of several brokers."""
    return max(replicas, key=lambda replica: -1 if replica.high_watermark is None else replica.high_watermark)


def _scan(
    log_dir: str, options: ReadOptions, found: dict[TopicPartition, list[Replica]], moving: set[TopicPartition]
) -> None:
    names = list_directory(log_dir)
    partitions: dict[TopicPartition, str] = {}
    for name in names:
        parsed = None if name in SKIPPED_DIRECTORIES else parse_dir_name(name)
        if parsed is None or not os.path.isdir(os.path.join(log_dir, name)):
            continue
        tp, suffix = parsed
        if not options.selects(tp.topic, tp.partition):
            partitions.setdefault(tp, "")
        elif not suffix:
            partitions[tp] = name
        elif suffix in (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX):
            moving.add(tp)
    if not partitions and not moving:
        _check_is_log_dir(log_dir, names)
    checkpoints = _Checkpoints(log_dir)
    for tp, name in partitions.items():
        if name:
            found.setdefault(tp, []).append(checkpoints.replica(tp, options))


def _check_is_log_dir(log_dir: str, names: Sequence[str]) -> None:
    """A log directory may be empty of partitions, but a directory of something else must not look like one."""
    if any(name.endswith(LOG_FILE_SUFFIX) and offset_of(name) is not None for name in names):
        parent = os.path.dirname(log_dir.rstrip("/"))
        raise KafkaLogError(f"{log_dir} is the directory of a partition: load {parent}, and select with topic")
    if META_PROPERTIES_FILE not in names and HIGH_WATERMARK_FILE not in names:
        raise KafkaLogError(
            f"{log_dir} is no log directory of Kafka: it has no directory TOPIC-PARTITION and no {META_PROPERTIES_FILE}"
        )


class _Checkpoints:
    """The checkpoint files of one log directory."""

    def __init__(self, log_dir: str) -> None:
        self._log_dir = log_dir
        self._high_watermarks = self._read(HIGH_WATERMARK_FILE)
        self._starts = self._read(LOG_START_OFFSET_FILE) or {}
        self._recovery_points = self._read(RECOVERY_POINT_FILE) or {}
        self._is_clean = os.path.exists(os.path.join(log_dir, CLEAN_SHUTDOWN_FILE))

    def _read(self, name: str) -> Mapping[TopicPartition, int] | None:
        path = os.path.join(self._log_dir, name)
        try:
            return read_offsets(path) if os.path.exists(path) else None
        except CheckpointError as error:
            raise KafkaLogError(f"{path} is no checkpoint of offsets: {error}") from None
        except OSError as error:
            raise KafkaLogError(cannot_read(path, error)) from None

    def replica(self, tp: TopicPartition, options: ReadOptions) -> Replica:
        high_watermark = None
        if self._high_watermarks is not None:
            high_watermark = self._high_watermarks.get(tp, 0)
            if tp not in self._high_watermarks and not options.beyond_high_watermark:
                warn(
                    f"{tp} in {self._log_dir} has no entry in {HIGH_WATERMARK_FILE}, so that nothing of it is read: a "
                    "broker adds it within seconds; beyondHighWatermark=true reads all that is there"
                )
        return Replica(
            topic=tp.topic,
            partition=tp.partition,
            log_dir=self._log_dir,
            topic_id=read_topic_id(os.path.join(self._log_dir, log_dir_name(tp))),
            high_watermark=high_watermark,
            checkpointed_start=self._starts.get(tp, 0),
            flushed_end=ALL_IS_FLUSHED if self._is_clean else self._recovery_points.get(tp, 0),
            elsewhere=tuple(path for path in options.log_dirs if path != self._log_dir),
        )


def read_topic_id(path: str) -> bytes | None:
    """The topic id of a partition's directory; None if it has none that can be read."""
    try:
        return read_partition_metadata(str(Path(path) / "partition.metadata"))
    except (CheckpointError, OSError):
        return None


def list_directory(path: str) -> list[str]:
    """Raises: KafkaLogError."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        raise KafkaLogError(cannot_read(path, error)) from None


def cannot_read(path: str, error: OSError) -> str:
    """What is said of a path that cannot be read."""
    match error:
        case FileNotFoundError():
            return f"there is no {path} on this machine"
        case NotADirectoryError():
            return f"{path} is not a directory"
        case PermissionError():
            return f"{path} may not be read by this user"
        case _:
            return f"{path} cannot be read: {error.strerror or error}"
