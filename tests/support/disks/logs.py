"""Logs for tests: an environment with a clock that is moved by hand, and short ways to batches."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.config.log_config import LogConfig
from odradek.storage.config.producer_config import ProducerStateManagerConfig
from odradek.storage.disk.environment import Environment
from odradek.storage.disk.file_system import FileSystem, OsFileSystem
from odradek.storage.disk.log_dir import LogDir
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.disk.ports import InlineIoPool, InlineWorkerPool, IoPool, WorkerPool
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.recovery.log_loader import load_log
from odradek.storage.segment.fetch_data import FetchDataInfo, FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

T = TypeVar("T")
NOW = 1_700_000_000_000
TP = TopicPartition("topic", 0)


class DeferredIoPool:
    """An IoPool whose work is done when the test calls for it."""

    def __init__(self) -> None:
        self.pending: deque[Callable[[], None]] = deque()

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        self.pending.append(lambda: InlineIoPool().submit(work, done))

    def run_one(self) -> None:
        self.pending.popleft()()

    def run_all(self) -> int:
        count = 0
        while self.pending:
            self.run_one()
            count += 1
        return count


class Disk:
    """A directory with everything a log needs around it. `advance` moves time and runs what is due."""

    def __init__(
        self,
        path: Path,
        *,
        fs: FileSystem | None = None,
        io_pool: IoPool | None = None,
        workers: WorkerPool | None = None,
        open_files: OpenFiles | None = None,
        validate_all: bool = False,
        verification: bool = False,
    ) -> None:
        self.path = path
        self.clock = ManualClock(NOW)
        self.timer = SystemTimer(self.clock)
        names = itertools.count()
        self.environment = Environment(
            clock=self.clock,
            timer=self.timer,
            fs=fs or OsFileSystem(),
            io_pool=io_pool or InlineIoPool(),
            workers=workers or InlineWorkerPool(),
            open_files=OpenFiles() if open_files is None else open_files,
            new_uuid_hex=lambda: f"{next(names):032x}",
            validate_all_records=validate_all,
            producers=ProducerStateManagerConfig(transaction_verification=verification),
        )
        self.log_dir = LogDir(str(path), self.environment)

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()

    def log(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        tp: TopicPartition = TP,
        clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        first_dirty_offset: int = 0,
    ) -> UnifiedLog:
        """Open or create a log as the log manager would."""
        return load_log(
            str(self.path / f"{tp.topic}-{tp.partition}"),
            tp,
            LogConfig.from_props({}, overrides or {}),
            self.log_dir,
            self.environment,
            had_clean_shutdown=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            first_dirty_offset=first_dirty_offset,
        )


def batch(
    *values: bytes | None,
    key: bytes | None = b"k",
    timestamp: int = NOW,
    base_offset: int = 0,
    epoch: int = -1,
    compression: int = 0,
    **producer: int | bool,
) -> memoryview:
    """One batch of magic 2 with these values; timestamps count up from `timestamp`."""
    records = [SimpleRecord(timestamp + index, key, value) for index, value in enumerate(values)]
    return memoryview(
        build_batch(
            records,
            base_offset=base_offset,
            partition_leader_epoch=epoch,
            compression_type=compression,
            **producer,  # type: ignore[arg-type]
        )
    )


def marker(
    kind: ControlRecordType,
    *,
    producer_id: int,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = NOW,
    base_offset: int = 0,
    epoch: int = -1,
) -> memoryview:
    """A control batch that ends a transaction."""
    record = EndTransactionMarker(type=kind, coordinator_epoch=coordinator_epoch).to_record(timestamp)
    return memoryview(
        build_batch(
            [record],
            base_offset=base_offset,
            partition_leader_epoch=epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
            is_control=True,
        )
    )


def append(log: UnifiedLog, *values: bytes | None, epoch: int = 0, **kwargs: object) -> int:
    """Append one batch as leader; its first offset."""
    return log.append_as_leader(batch(*values, **kwargs), epoch).first_offset  # type: ignore[arg-type]


def read_bytes(found: FetchDataInfo) -> bytes:
    records = found.records
    return records.read() if isinstance(records, FileRegion) else bytes(records)


def read_all(log: UnifiedLog, start: int | None = None) -> list[Record]:
    """Every record from an offset to the log's end, read batch by batch as a follower would."""
    from odradek.protocol.records.batch import batches

    offset = log.log_start_offset if start is None else start
    found: list[Record] = []
    while offset < log.log_end_offset:
        data = read_bytes(log.read(offset, 1, FetchIsolation.LOG_END, min_one_message=True))
        if not data:
            break
        for each in batches(memoryview(data)):
            found += [record for record in each.records() if record.offset >= offset]
            offset = each.next_offset
    return found


def values_of(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def crash_copy(source: Path, target: Path) -> Path:
    """The directory as a killed process leaves it: everything written, nothing closed."""
    import shutil

    shutil.copytree(source, target)
    return target
