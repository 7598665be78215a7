"""The data source `kafka_log`: Kafka's log directories as Spark tables, without a broker.

`register(spark)` makes it known to a session, for `spark.read.format("kafka_log")` and for `spark.readStream`.
`check(...)` finds errors in options and directories before a JVM starts.

Modules below this one import no Spark, except `source.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("kafka_log")` known to a session, and give its Python workers the modules that they import."""
    from spark_jobs.common.code_archive import send_code
    from spark_jobs.kafka_log.source import KafkaLogDataSource

    send_code(spark.sparkContext)
    spark.dataSource.register(KafkaLogDataSource)


def check(log_dirs: str, options: Mapping[str, str] | None = None) -> None:
    """The check of a job, before a JVM starts: directories that can be read, topics that are there, right options.

    Raises: JobError.
    """
    from spark_jobs.common.job import JobError
    from spark_jobs.kafka_log.errors import KafkaLogError
    from spark_jobs.kafka_log.log_dirs import find_replicas
    from spark_jobs.kafka_log.options import parse_options

    try:
        find_replicas(parse_options({**(options or {}), "path": log_dirs}))
    except KafkaLogError as error:
        raise JobError(str(error)) from None
