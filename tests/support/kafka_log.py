"""Reads log directories with the data source `kafka_log`, without Spark: plans and reads as its workers do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    encode_offsets,
)
from odradek.storage.log.unified_log import UnifiedLog
from spark_jobs.kafka_log import log_range, planning
from spark_jobs.kafka_log.log_file import LogFile
from spark_jobs.kafka_log.options import ReadOptions, parse_options
from spark_jobs.kafka_log.planning import SegmentTask, plan
from spark_jobs.kafka_log.segment_reader import read_task
from tests.support.disks.logs import batch, marker

Row = dict[str, Any]


def checked(path: Path | str, **options: object) -> ReadOptions:
    """Options as Spark passes them on: texts."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    return parse_options({"path": str(path), **texts})


def planned(path: Path | str, **options: object) -> list[SegmentTask]:
    """The tasks of a read."""
    return plan(checked(path, **options))


def rows_of(tasks: list[SegmentTask], path: Path | str, **options: object) -> list[Row]:
    """The rows of planned tasks."""
    reading = checked(path, **options)
    return [row for task in tasks for part in read_task(task, reading) for row in plain(part)]


def plain(part: pa.RecordBatch) -> list[Row]:
    """Rows as dictionaries; times are microseconds, because Python's own end with the year 9999."""
    column = part.schema.get_field_index("timestamp")
    return part.set_column(column, "timestamp", part.column(column).cast(pa.int64())).to_pylist()


def rows(path: Path | str, **options: object) -> list[Row]:
    """All rows, in the order of the tasks."""
    return rows_of(planned(path, **options), path, **options)


def offsets(path: Path | str, **options: object) -> list[int]:
    """The offsets of all rows."""
    return [row["offset"] for row in rows(path, **options)]


def milliseconds(row: Row) -> int:
    """The timestamp of a row."""
    return row["timestamp"] // 1000


def write_checkpoint(path: Path, name: str, **values: int) -> None:
    """A checkpoint file; the keyword `topic_0` is the partition topic-0."""
    entries = {TopicPartition(*split_partition(key)): value for key, value in values.items()}
    (path / name).write_bytes(encode_offsets(entries))


def split_partition(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("_")
    return topic, int(partition)


def write_high_watermark(path: Path, offset: int) -> None:
    """The checkpoint of a log directory with the one partition of `Disk.log`."""
    write_checkpoint(path, HIGH_WATERMARK_FILE, topic_0=offset)


def write_recovery_point(path: Path, offset: int) -> None:
    write_checkpoint(path, RECOVERY_POINT_FILE, topic_0=offset)


def write_log_start(path: Path, offset: int) -> None:
    write_checkpoint(path, LOG_START_OFFSET_FILE, topic_0=offset)


def append_transactional(log: UnifiedLog, producer_id: int, *values: bytes, sequence: int) -> None:
    """Append a batch of an open transaction as a follower does, which asks for no verification."""
    log.append_as_follower(
        batch(
            *values,
            base_offset=log.log_end_offset,
            epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
    )


def end_transaction(log: UnifiedLog, producer_id: int, kind: ControlRecordType) -> None:
    """Append a marker."""
    log.append_as_follower(marker(kind, producer_id=producer_id, base_offset=log.log_end_offset, epoch=0))


@contextmanager
def files_opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the `.log` files that are opened meanwhile."""
    names: list[str] = []
    original = LogFile.__init__

    def opened(self: LogFile, *arguments: Any) -> None:
        original(self, *arguments)
        names.append(os.path.basename(self.segment.path))

    with monkeypatch.context() as patched:
        patched.setattr(LogFile, "__init__", opened)
        yield names


@contextmanager
def interfering(monkeypatch: pytest.MonkeyPatch, interfere: Callable[[str], None]) -> Iterator[None]:
    """Calls `interfere` as a broker that gets the processor: in front of each listing, and before a file is opened."""
    original_open, original_list = LogFile.__init__, planning.list_segments

    def opened(self: LogFile, *arguments: Any) -> None:
        interfere("open")
        original_open(self, *arguments)

    def listed(*arguments: Any) -> Any:
        interfere("list")
        return original_list(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(LogFile, "__init__", opened)
        patched.setattr(planning, "list_segments", listed)
        patched.setattr(log_range, "list_segments", listed)
        yield
