"""Recovers a log in a worker process: the job, its progress reports and its result.

The worker runs `LogLoader`: it truncates the log at the first bad batch and writes new indexes, producer snapshots and
the leader epochs. The broker then opens the log without a scan. Until then, only the worker accesses the log.

Invariant: the worker leaves a log without a clean stop: if it or the broker dies before the broker opened the log, the
next start recovers it again, with the same result.

Kafka: LogManager.loadLogs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage import log_files
from odradek.storage.config.log_config import LogConfig
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.environment import Environment
from odradek.storage.producers.producer_state_manager import EMPTY_SNAPSHOT_BYTES, ProducerMemory
from odradek.storage.recovery.log_loader import LogLoader

if TYPE_CHECKING:
    from collections.abc import Callable


class RecoveryJob(NamedTuple):
    """A log to recover. Everything here can be pickled."""

    path: str
    topic_partition: TopicPartition
    config: LogConfig
    log_start_offset: int
    recovery_point: int
    first_dirty_offset: int
    had_clean_shutdown: bool
    producer_id_expiration_ms: int


class RecoveryProgress(NamedTuple):
    """A worker's report during the scan."""

    segments_remaining: int
    scanned_bytes: int
    """The bytes scanned since the last report."""


class Unloadable(NamedTuple):
    """Recovery cannot repair the log: the broker must not start."""

    reason: str


def recover_log(job: RecoveryJob, report: Callable[[object], None]) -> ProducerMemory | Unloadable:
    """Recover a log in a worker process. Returns the producer state, which has more than a snapshot. Raises OSError."""
    environment = Environment.of_worker(producer_id_expiration_ms=job.producer_id_expiration_ms)
    loader = LogLoader(
        job.path,
        job.topic_partition,
        job.config,
        environment,
        job.log_start_offset,
        job.recovery_point,
        job.had_clean_shutdown,
        first_dirty_offset=job.first_dirty_offset,
        on_progress=lambda remaining, scanned: report(RecoveryProgress(remaining, scanned)),
    )
    try:
        loader.load()
        if loader.epochs_changed:
            content = checkpoints.encode_epochs(loader.leader_epochs.entries)
            environment.fs.replace_file(os.path.join(job.path, checkpoints.LEADER_EPOCH_FILE), content)
        for segment in loader.removed:
            for path in segment.paths:
                environment.fs.unlink(path)
    except KafkaError as error:
        return Unloadable(str(error))
    finally:
        for segment in [*loader.segments, *loader.removed]:
            segment.discard()
    return loader.producers.memory()


def bytes_to_scan(path: str, recovery_point: int, *, had_clean_shutdown: bool) -> int:
    """The bytes of records that a start reads to load a log, estimated from file names and sizes. Raises OSError.

    After a clean stop 0, unless an index is missing, a replacement of segments was interrupted, or the newest producer
    snapshot is older than the log end.
    """
    sizes: dict[int, int] = {}
    indexed: set[int] = set()
    snapshots: dict[int, int] = {}
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(log_files.SWAP_FILE_SUFFIX):
                return _size_of_all(path)
            offset = log_files.offset_of(entry.name)
            if offset is None:
                continue
            suffix = os.path.splitext(entry.name)[1]
            if suffix == log_files.LOG_FILE_SUFFIX:
                sizes[offset] = entry.stat().st_size
            elif suffix == log_files.INDEX_FILE_SUFFIX:
                indexed.add(offset)
            elif suffix == log_files.SNAPSHOT_FILE_SUFFIX:
                snapshots[offset] = entry.stat().st_size
    if not sizes:
        return 0
    first, newest_snapshot = max(sizes) + 1, max(snapshots, default=-1)
    if not had_clean_shutdown:
        first = max((base for base in sizes if base <= recovery_point), default=0)
        if snapshots.get(first, 0) > EMPTY_SNAPSHOT_BYTES:  # recovery also reads the last batches of the producers
            first = max((base for base in sizes if base < first), default=first)
    elif 0 <= newest_snapshot < first:  # no snapshot means an empty state, see `rebuild_producer_state`
        first = max((base for base in sizes if base <= newest_snapshot), default=0)
    return sum(size for base, size in sizes.items() if base >= first or base not in indexed)


def _size_of_all(path: str) -> int:
    with os.scandir(path) as entries:
        return sum(entry.stat().st_size for entry in entries)
