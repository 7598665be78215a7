"""`__consumer_offsets` as data frames: decoded records, and the last of each key at a few points in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.lag.offset_records import OFFSET, SCHEMA, offset_record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's admin client skips internal topics and says nothing; its consumer does not.
READ_INTERNAL_TOPICS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
KEY_COLUMNS = ("kind", "group", "topic", "partition", "member_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePoints:
    """Evenly spaced points in time, the first at `first_ms`, the last at the end of the window."""

    first_ms: int
    step_ms: int
    count: int

    @classmethod
    def before(cls, now_ms: int, window_ms: int, count: int) -> TimePoints:
        """`count` points, of which the last is `now_ms`."""
        step_ms = max(1, window_ms // max(1, count - 1))
        return cls(first_ms=now_ms - step_ms * (count - 1), step_ms=step_ms, count=count)

    def times_ms(self) -> list[int]:
        return [self.first_ms + index * self.step_ms for index in range(self.count)]


def decoded(records: DataFrame) -> DataFrame:
    """The columns of `OffsetRecord`, with those of the record's own time and offset (time_ms, log_offset)."""
    from pyspark.sql import functions as F

    decode = F.udf(offset_record, SCHEMA)
    rows = records.select(decode("key", "value").alias("record"), F.unix_millis("timestamp").alias("time_ms"), "offset")
    return rows.where("record IS NOT NULL").select("record.*", "time_ms", F.col("offset").alias("log_offset"))


def last_by_point(decoded: DataFrame, points: TimePoints) -> DataFrame:
    """For each key the last record up to each point, where there is one that the point before did not have.

    `point` is the index of the point; records after the last point belong to the last. All records of a key are in one
    partition of `__consumer_offsets`, so their offsets say which is the last.
    """
    from pyspark.sql import functions as F

    steps = F.ceil((F.col("time_ms") - F.lit(points.first_ms)) / F.lit(points.step_ms))
    last = F.lit(points.count - 1)
    point = F.when(F.col("kind") == OFFSET, F.least(last, F.greatest(F.lit(0), steps))).otherwise(last).cast("int")
    state = F.struct("removed", "committed", "members", "log_offset")
    grouped = decoded.withColumn("point", point).groupBy(*KEY_COLUMNS, "point")
    rows = grouped.agg(F.max_by(state, "log_offset").alias("state"), F.count(F.lit(1)).alias("records"))
    return rows.select(*KEY_COLUMNS, "point", "state.*", "records")
