"""The data source `kafka_log` of Spark: reads the log directories of Kafka without a broker.

    from spark_jobs.kafka_log import register

    register(spark)
    spark.read.format("kafka_log").option("topic", "orders").load("/var/lib/kafka/data")

The driver plans, executors read: both need the directories under the same path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from spark_jobs.kafka_log.columns import ddl
from spark_jobs.kafka_log.log_dirs import list_directory
from spark_jobs.kafka_log.options import ReadOptions, parse_options
from spark_jobs.kafka_log.planning import SegmentTask, plan
from spark_jobs.kafka_log.segment_reader import read_task
from spark_jobs.kafka_log.stream_offsets import StreamOffsets, TopicOffsets

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class LogPartition(InputPartition):
    """One task."""

    def __init__(self, task: SegmentTask) -> None:
        super().__init__(task)


class KafkaLogDataSource(DataSource):
    """Batches and streams of records out of log directories."""

    @classmethod
    def name(cls) -> str:
        return "kafka_log"

    def schema(self) -> str:
        """The columns. A directory that is not there is an error of load(), before any action."""
        options = parse_options(self.options)
        for log_dir in options.log_dirs:
            list_directory(log_dir)
        return ddl(options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        return KafkaLogReader(parse_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return KafkaLogStreamReader(parse_options(self.options, streaming=True))


class KafkaLogReader(DataSourceReader):
    """Reads what the log directories have when the query is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[LogPartition]:
        return [LogPartition(task) for task in plan(self._options)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Without any task, Spark asks for the partition None."""
        if isinstance(partition, LogPartition):
            yield from read_task(partition.value, self._options)


class KafkaLogStreamReader(DataSourceStreamReader):
    """Follows the end of the logs. Spark keeps one of these in a process of its own, and a copy in each task."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._offsets = StreamOffsets(options)

    def initialOffset(self) -> TopicOffsets:
        return self._offsets.initial()

    def latestOffset(self) -> TopicOffsets:
        return self._offsets.latest()

    def partitions(self, start: TopicOffsets, end: TopicOffsets) -> list[LogPartition]:
        return [LogPartition(task) for task in self._offsets.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if isinstance(partition, LogPartition):
            yield from read_task(partition.value, self._options)
