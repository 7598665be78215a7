"""A task's work: from a range of offsets to Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.protocol.records.errors import CorruptRecordError
from spark_jobs.kafka_log.arrow_rows import ArrowRows, decode, within
from spark_jobs.kafka_log.bad_batches import BadBatches
from spark_jobs.kafka_log.log_range import LogRange
from spark_jobs.kafka_log.options import ReadOptions
from spark_jobs.kafka_log.planning import SegmentTask

if TYPE_CHECKING:
    import pyarrow as pa


def read_task(task: SegmentTask, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the order of their offsets. Raises: KafkaLogError."""
    replica = task.replica
    bad = BadBatches(options.permissive)
    rows = ArrowRows(replica.topic, replica.partition, replica.log_dir, options)
    for found, segment, is_aborted in LogRange(replica, task.start, task.end, options, bad).batches():
        batch = found.batch
        if batch.is_control and not options.include_control:
            continue
        if is_aborted and options.read_committed and not batch.is_control:
            continue
        try:
            for columns in decode(found, options):
                wanted = within(columns, task.start, task.end)
                yield from rows.add(batch, wanted, segment, is_aborted=is_aborted)
        except CorruptRecordError as error:
            path = f"{replica.path}/{segment}"
            bad.found(path, found.position, error)
    yield from rows.rest()
    bad.report()
