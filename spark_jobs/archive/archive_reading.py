"""Reads an archive: its columns checked, a summary of its partitions, and the rows as a restore writes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.archive.restore_plan import Archived, Place, PlaceMapping, Positions, TimeRange
from spark_jobs.archive.restore_writer import COLUMNS
from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEEDED_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
MOST_TASKS = 200


def check_archive(path: str) -> None:
    """Say before Spark starts that a local folder is not there. Raises: JobError."""
    if "://" not in path and not Path(path).is_dir():
        raise JobError(f"there is no archive {path}")


def read_archive(spark: SparkSession, path: str, *, topics: Collection[str], times: TimeRange) -> DataFrame:
    """The rows of an archive with its record columns alone; `headers` is null if it has none. Raises: JobError."""
    from pyspark.sql import functions as F

    # A folder topic=2024 is a topic, not a number.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    rows = spark.read.parquet(path)
    missing = [name for name in NEEDED_COLUMNS if name not in rows.columns]
    if missing:
        raise JobError(f"{path} is no archive of archive_topic: it has no column {', '.join(missing)}")
    if "headers" not in rows.columns:
        rows = rows.withColumn("headers", F.lit(None).cast("array<struct<key:string,value:binary>>"))
    rows = rows.select(
        F.col("topic"),
        F.col("partition").cast("int").alias("partition"),
        F.col("offset").cast("long").alias("offset"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
        F.col("key").cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.col("headers"),
    )
    if topics:
        rows = rows.where(F.col("topic").isin(*topics))
    if times.starting_timestamp_ms is not None:
        rows = rows.where(F.col("timestamp_ms") >= times.starting_timestamp_ms)
    if times.ending_timestamp_ms is not None:
        rows = rows.where(F.col("timestamp_ms") < times.ending_timestamp_ms)
    return rows


def summarized(rows: DataFrame) -> list[Archived]:
    """What is there of each partition, in their order."""
    from pyspark.sql import functions as F

    summary = rows.groupBy("topic", "partition").agg(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min("timestamp_ms").alias("first_ms"),
        F.max("timestamp_ms").alias("last_ms"),
    )
    found = [
        Archived(
            place=Place(row.topic, row.partition),
            records=row.records,
            first_offset=row.first_offset,
            last_offset=row.last_offset,
            first_ms=row.first_ms,
            last_ms=row.last_ms,
        )
        for row in summary.collect()
    ]
    return sorted(found, key=lambda archived: archived.place)


def rows_to_write(
    rows: DataFrame, archived: Collection[Archived], mapping: PlaceMapping, progress: Mapping[Place, Positions]
) -> DataFrame:
    """The rows with their targets, each target in one task and in the order of the archive, without what is there."""
    from pyspark.sql import functions as F

    plan = []
    for each in archived:
        target = mapping.target(each.place)
        begin = progress.get(target, {}).get(each.place, 0)
        plan.append((*each.place, *target, begin))
    spark = rows.sparkSession
    places = spark.createDataFrame(
        plan, "topic string, partition int, target_topic string, target_partition int, begin long"
    )
    tasks = min(MOST_TASKS, len({entry[2:4] for entry in plan}))
    return (
        rows.join(F.broadcast(places), ["topic", "partition"])
        .where(F.col("offset") >= F.col("begin"))
        .select(*COLUMNS)
        .repartition(tasks, "target_topic", "target_partition")
        .sortWithinPartitions("target_topic", "target_partition", "topic", "partition", "offset")
    )
