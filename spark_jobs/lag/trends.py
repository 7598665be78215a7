"""Samples of lag, and their trend over a window, as data frames.

A sample is what one look at the cluster found for a partition that a group reads. The trend of a partition is the line
through its samples (least squares): slopes a second, and how much of the variance the line explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_SCHEMA = (
    "time_ms BIGINT, group STRING, topic STRING, partition INT, committed BIGINT, log_end BIGINT, members INT"
)
KEY = ("group", "topic", "partition")


class Sample(NamedTuple):
    """What a group had committed in a partition at a moment, and where the log ended."""

    time_ms: int
    group: str
    topic: str
    partition: int
    committed: int | None  # None: nothing
    log_end: int | None  # None: the partition is not there, or has no leader
    members: int  # of the group

    @property
    def lag(self) -> int | None:
        """Records between the two; negative when the log ends before the committed offset."""
        return None if self.committed is None or self.log_end is None else self.log_end - self.committed


class Trend(NamedTuple):
    """How the lag of a partition has changed in the window."""

    group: str
    topic: str
    partition: int
    samples: int  # those with a lag
    idle_ms: int | None  # since the committed offset was last seen to move; None: no sample with one
    lag_slope: float | None  # records a second; None: too few samples
    commit_slope: float | None
    end_slope: float | None
    explained: float | None  # 0 to 1: the share of the lag's variance that its slope explains


def sample_rows(spark: SparkSession, samples: Iterable[Sample]) -> DataFrame:
    return spark.createDataFrame(list(samples), SAMPLE_SCHEMA)


def trend_rows(samples: DataFrame) -> DataFrame:
    """The trend of each partition over all given samples, with the columns of `Trend`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_order = Window.partitionBy(*KEY).orderBy("time_ms")
    known = samples.where("committed IS NOT NULL")
    before = F.lag("committed").over(in_order)
    moved = F.when(F.col("committed") != before, F.col("time_ms"))
    seconds = F.col("time_ms") / F.lit(1000.0)
    lag = F.col("log_end") - F.col("committed")
    since_ms = F.coalesce(F.max("moved_ms"), F.min("time_ms"))
    rows = known.withColumn("moved_ms", moved).withColumn("seconds", seconds).withColumn("lag", lag)
    return rows.groupBy(*KEY).agg(
        F.count("lag").alias("samples"),
        (F.max("time_ms") - since_ms).alias("idle_ms"),
        F.regr_slope("lag", "seconds").alias("lag_slope"),
        F.regr_slope("committed", "seconds").alias("commit_slope"),
        F.regr_slope("log_end", "seconds").alias("end_slope"),
        F.regr_r2("lag", "seconds").alias("explained"),
    )


def trends(samples: DataFrame) -> dict[tuple[str, str, int], Trend]:
    """The trend of each partition, by group, topic and partition."""
    found = (Trend(**row.asDict()) for row in trend_rows(samples).collect())
    return {(trend.group, trend.topic, trend.partition): trend for trend in found}
