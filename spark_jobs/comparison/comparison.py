"""One comparison from the pinned ranges to the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.common.job import say
from spark_jobs.common.new_folder import check_new, write_new
from spark_jobs.common.stage_progress import StageProgress
from spark_jobs.comparison.matching import (
    OFFSET,
    equal_pairs,
    fingerprints,
    groups_with_descents,
    paired,
    reordered,
    unequal,
)
from spark_jobs.comparison.ranges import TopicRange, spark_offsets
from spark_jobs.comparison.report import Counts, Place, counts_of, difference_line, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.common.report_options import ReportOptions
    from spark_jobs.common.streaming_run import StopRequest
    from spark_jobs.comparison.options import ComparisonOptions, Side

EQUAL_STATUS = 0
DIFFERENT_STATUS = 3


def compare(
    spark: SparkSession,
    options: ComparisonOptions,
    ours: Sequence[TopicRange],
    others: Sequence[TopicRange],
    stop: StopRequest,
) -> int:
    """Compare the ranges, report, and return the exit status. Raises: JobError."""
    from pyspark import StorageLevel

    # Else adaptive execution makes as few tasks as there are cores, of any size: they would sort gigabytes each.
    spark.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    rules = options.rules
    names = list(zip(options.ours.topics, options.other.topics, strict=True))
    output = options.report.output
    if output is not None:
        check_new(spark, output)
    sides = [
        fingerprints(_read(spark, options, side, ranges), rules, is_other=is_other)
        for side, ranges, is_other in ((options.ours, ours, False), (options.other, others, True))
    ]
    with StageProgress(spark, stop) as progress:
        progress.begin("reading and matching")
        pairs = paired(*sides).persist(StorageLevel.DISK_ONLY)
        compared = _compared(pairs)
        differences = unequal(pairs, rules)
        if rules.mode != OFFSET:
            progress.begin("comparing the order")
            equal = equal_pairs(pairs, rules)
            groups = groups_with_descents(equal).persist(StorageLevel.DISK_ONLY)
            if not groups.isEmpty():
                differences = differences.unionByName(reordered(spark, equal, groups))
        progress.begin("counting the differences")
        differences = differences.persist(StorageLevel.DISK_ONLY)
        found = differences.groupBy("topic_pair", "kind", "fields").count().collect()
        counts = counts_of(names, compared, [(row[0], row[1], row[2], row[3]) for row in found])
        for line in summary(counts):
            say(line)
        if all(each.are_equal for each in counts):
            return EQUAL_STATUS
        _show(differences, names, options.report, counts)
        if output is not None:
            progress.begin(f"writing {output}")
            write_new(named_differences(differences, names), output, options.report.output_format)
    return DIFFERENT_STATUS


def _read(spark: SparkSession, options: ComparisonOptions, side: Side, ranges: Sequence[TopicRange]) -> DataFrame:
    """The records of a side with the number of their pair of topics."""
    from pyspark.sql import functions as F

    begins, ends = spark_offsets(ranges)
    source = side.connection.source_options() | {
        "subscribe": ",".join(each.topic for each in ranges),
        "startingOffsets": begins,
        "endingOffsets": ends,
        "includeHeaders": str(options.rules.headers).lower(),
    }
    if options.read_committed:
        source["kafka.isolation.level"] = "read_committed"
    if options.min_partitions is not None:
        source["minPartitions"] = str(options.min_partitions)
    records = spark.read.format("kafka").options(**source).load()
    numbers = F.create_map(*(F.lit(part) for number, each in enumerate(ranges) for part in (each.topic, number)))
    records = records.withColumn("topic_pair", numbers[F.col("topic")])
    if options.starting_timestamp_ms is not None:
        records = records.where(F.unix_millis("timestamp") >= options.starting_timestamp_ms)
    if options.ending_timestamp_ms is not None:
        records = records.where(F.unix_millis("timestamp") < options.ending_timestamp_ms)
    return records


def _compared(pairs: DataFrame) -> list[dict[str, int]]:
    from pyspark.sql import functions as F

    rows = (
        pairs.groupBy("topic_pair")
        .agg(
            F.count("offset").alias("records"),
            F.count("other_offset").alias("other_records"),
            F.count(F.when(F.col("offset").isNotNull(), F.col("other_offset"))).alias("equal"),
        )
        .collect()
    )
    return [row.asDict() for row in rows]


def named_differences(differences: DataFrame, names: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows that are written: with the names of the topics, and times as timestamps."""
    from pyspark.sql import functions as F

    def topic(side: int) -> Column:
        return F.element_at(F.array(*(F.lit(pair[side]) for pair in names)), F.col("topic_pair") + 1)

    return differences.select(
        "kind",
        F.when(F.col("fields").isNotNull(), F.split("fields", ",")).alias("fields"),
        topic(0).alias("topic"),
        "partition",
        "offset",
        F.timestamp_millis("timestamp_ms").alias("timestamp"),
        topic(1).alias("other_topic"),
        "other_partition",
        "other_offset",
        F.timestamp_millis("other_timestamp_ms").alias("other_timestamp"),
    )


def _show(
    differences: DataFrame, names: Sequence[tuple[str, str]], report: ReportOptions, counts: Sequence[Counts]
) -> None:
    """Print the first differences in the order of the topics."""
    from pyspark.sql import functions as F

    if report.shown == 0:
        return
    by_place = [F.coalesce(name, f"other_{name}") for name in ("partition", "offset")]
    for row in differences.orderBy("topic_pair", *by_place, "kind").limit(report.shown).collect():
        topic, other_topic = names[row.topic_pair]
        ours = _place(topic, row.partition, row.offset)
        say(difference_line(row.kind, row.fields, ours, _place(other_topic, row.other_partition, row.other_offset)))
    for line in report.more(sum(sum(each.differences.values()) for each in counts)):
        say(line)


def _place(topic: str, partition: int | None, offset: int | None) -> Place | None:
    if partition is None or offset is None:
        return None
    return Place(topic=topic, partition=partition, offset=offset)
