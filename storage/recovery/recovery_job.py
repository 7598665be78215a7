"""Recovering a log in a worker process: what the worker is given, does, and tells.

The worker runs the very `LogLoader` a start runs, and leaves its files behind: cut where the first bad batch was, with
new indexes and producer snapshots, the leader epochs written. The broker then opens the log as one that needs no scan.
Until then the worker is the only one that touches the log.

Invariant: what the worker leaves is again a log that was not stopped cleanly: should anything die before the broker has
opened it, the next start recovers it once more, with the same result.

Answers to the tasks that LogManager.loadLogs gives to its recovery threads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryJob:
    """A log to recover. Everything here can be pickled."""

    path: str
    topic_partition: TopicPartition
    config: LogConfig
    log_start_offset: int
    recovery_point: int
    had_clean_shutdown: bool
    producer_id_expiration_ms: int


class RecoveryProgress(NamedTuple):
    """What a worker reports while it scans."""

    segments_remaining: int
    scanned_bytes: int
    """Since the last report."""


class Unloadable(NamedTuple):
    """The log contradicts itself in a way that recovery does not mend: the broker is not to start."""

    reason: str


def recover_log(job: RecoveryJob, report: Callable[[object], None]) -> ProducerMemory | Unloadable:
    """The work of a worker process: answers what files cannot tell. Raises OSError."""
    environment = Environment.of_worker(producer_id_expiration_ms=job.producer_id_expiration_ms)
    loader = LogLoader(
        job.path,
        job.topic_partition,
        job.config,
        environment,
        job.log_start_offset,
        job.recovery_point,
        job.had_clean_shutdown,
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
    """How many bytes of records a start would read in a log's directory, as far as file names and sizes tell.

    After a clean stop that is nothing, unless an index is missing, a replacement of segments was interrupted, or the
    newest producer snapshot does not reach the last segment's end.
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
        if snapshots.get(first, 0) > EMPTY_SNAPSHOT_BYTES:  # the last batches of the producers are looked for as well
            first = max((base for base in sizes if base < first), default=first)
    elif 0 <= newest_snapshot < first:  # none at all means an empty state, see `rebuild_producer_state`
        first = max((base for base in sizes if base <= newest_snapshot), default=0)
    return sum(size for base, size in sizes.items() if base >= first or base not in indexed)


def _size_of_all(path: str) -> int:
    with os.scandir(path) as entries:
        return sum(entry.stat().st_size for entry in entries)
