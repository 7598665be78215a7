"""Reads an archive: its columns checked, a summary of its partitions, and the rows as a restore writes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.archive.restore_plan import Archived, Overlap, Place, PlaceMapping, Positions, TimeRange
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

    of_offsets = rows.groupBy("topic", "partition", "offset").agg(
        F.count("*").alias("records"),
        F.min("timestamp_ms").alias("first_ms"),
        F.max("timestamp_ms").alias("last_ms"),
    )
    summary = of_offsets.groupBy("topic", "partition").agg(
        F.sum("records").alias("records"),
        F.count("*").alias("offsets"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
    )
    found = [
        Archived(
            place=Place(row.topic, row.partition),
            records=row.records,
            offsets=row.offsets,
            first_offset=row.first_offset,
            last_offset=row.last_offset,
            first_ms=row.first_ms,
            last_ms=row.last_ms,
        )
        for row in summary.collect()
    ]
    return sorted(found, key=lambda archived: archived.place)


def overlaps_of(rows: DataFrame, archived: Collection[Archived]) -> list[Overlap]:
    """Where two records have one offset.

    Rows that are equal are no two records: a copy without `_spark_metadata` has the files that a killed run left.
    """
    from pyspark.sql import functions as F

    doubled = [each.place for each in archived if each.records > each.offsets]
    if not doubled:
        return []
    places = rows.sparkSession.createDataFrame(doubled, "topic string, partition int")
    of_offsets = (
        rows.join(F.broadcast(places), ["topic", "partition"])
        .withColumn("content", F.xxhash64("timestamp_ms", "key", "value", "headers"))
        .groupBy("topic", "partition", "offset")
        .agg(
            F.min("content").alias("one_content"),
            F.max("content").alias("other_content"),
            F.min("timestamp_ms").alias("older_ms"),
            F.max("timestamp_ms").alias("newer_ms"),
        )
    )
    summary = (
        of_offsets.where(F.col("one_content") != F.col("other_content"))
        .groupBy("topic", "partition")
        .agg(
            F.count("*").alias("offsets"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.max("older_ms").alias("older_until_ms"),
            F.min("newer_ms").alias("newer_from_ms"),
        )
    )
    return [
        Overlap(
            place=Place(row.topic, row.partition),
            offsets=row.offsets,
            first_offset=row.first_offset,
            last_offset=row.last_offset,
            older_until_ms=row.older_until_ms,
            newer_from_ms=row.newer_from_ms,
        )
        for row in summary.collect()
    ]


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
