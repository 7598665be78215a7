"""Reads log directories with the data source `kafka_log`, without Spark: plans and reads as its workers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_jobs.kafka_log.options import parse_options
from spark_jobs.kafka_log.planning import SegmentTask, plan
from spark_jobs.kafka_log.segment_reader import read_task

Row = dict[str, Any]


def planned(path: Path | str, **options: object) -> list[SegmentTask]:
    """The tasks of a read."""
    return plan(parse_options({"path": str(path), **texts(options)}))


def rows(path: Path | str, **options: object) -> list[Row]:
    """All rows, in the order of the tasks."""
    checked = parse_options({"path": str(path), **texts(options)})
    return [row for task in plan(checked) for part in read_task(task, checked) for row in part.to_pylist()]


def texts(options: dict[str, object]) -> dict[str, str]:
    """Option values as Spark passes them on."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def milliseconds(row: Row) -> int:
    """The timestamp of a row."""
    return round(row["timestamp"].timestamp() * 1000)
