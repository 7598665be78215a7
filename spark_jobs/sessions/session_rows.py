"""Clicks and sessions as data frames: the same transforms for a batch and for a stream.

`clicks` reads the values of records, `sessions` groups them, `session_records` makes the records of the sink. The time
zone of the session is UTC.

The id of a session is a hash of its user and its first click, so that a reader recognizes a record that is written
twice. Within one run of a query no two sessions have the same id: when a session is written, the watermark has passed
its end, so a click at its first moment is later than the watermark allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EPOCH_MS = r"^\d{1,15}$"
ISO_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
SESSION_ID_DIGITS = 32
OBSERVED = "clicks"  # the name of the counts in a batch's report


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickFields:
    """Which fields of the JSON say what. `time` may be empty: the timestamp of the record."""

    user: str = "user"
    time: str = "time"
    page: str = "page"
    max_ahead_ms: int = 3_600_000


def clicks(records: DataFrame, fields: ClickFields) -> DataFrame:
    """The columns user, time, page, partition and offset, from those of Spark's kafka source.

    Records that are no such JSON, have no user or no time, or are too far ahead are left out; how many is among the
    observed metrics of the query, as `unreadable`.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    names = dict.fromkeys(name for name in (fields.user, fields.time, fields.page) if name)
    schema = StructType([StructField(name, StringType()) for name in names])
    value = F.from_json(F.col("value").cast("string"), schema)
    rows = records.withColumn("_json", value).select(
        F.col("_json").getField(fields.user).alias("user"),
        _time(fields).alias("time"),
        (F.col("_json").getField(fields.page) if fields.page else F.lit(None).cast("string")).alias("page"),
        F.col("timestamp").alias("_sent"),
        "partition",
        "offset",
    )
    ahead_ms = F.unix_millis("time") - F.unix_millis("_sent")
    readable = F.col("user").isNotNull() & F.col("time").isNotNull() & (ahead_ms <= fields.max_ahead_ms)
    rows = rows.withColumn("_readable", F.coalesce(readable, F.lit(False)))
    counted = rows.observe(
        OBSERVED, F.count(F.lit(1)).alias("records"), F.count(F.when(~F.col("_readable"), 1)).alias("unreadable")
    )
    return counted.where("_readable").drop("_readable", "_sent")


def _time(fields: ClickFields) -> Column:
    """The time of a click, or null."""
    from pyspark.sql import functions as F

    if not fields.time:
        return F.col("timestamp")
    text = F.col("_json").getField(fields.time)
    since_epoch = F.timestamp_millis(text.try_cast("bigint"))
    return F.when(text.rlike(EPOCH_MS), since_epoch).otherwise(text.try_cast("timestamp"))


def sessions(clicks: DataFrame, *, gap_ms: int, watermark_ms: int) -> DataFrame:
    """One row for each session. Of a stream: when the watermark has passed the end of the session.

    Two clicks of a user belong to one session if they are at most `gap_ms` apart.
    """
    from pyspark.sql import functions as F

    # The place decides between clicks of the same moment, so that a batch that is run again gives the same row.
    click = F.struct("time", "partition", "offset", "page")
    grouped = clicks.withWatermark("time", f"{watermark_ms} milliseconds").groupBy(
        "user", F.session_window("time", f"{gap_ms} milliseconds").alias("window")
    )
    rows = grouped.agg(F.count(F.lit(1)).alias("clicks"), F.min(click).alias("entry"), F.max(click).alias("exit"))
    micros = F.unix_micros("first_click")
    rows = rows.select(
        "user",
        F.col("entry.time").alias("first_click"),
        F.col("exit.time").alias("last_click"),
        "clicks",
        F.col("entry.page").alias("entry_page"),
        F.col("exit.page").alias("exit_page"),
    )
    text = F.concat_ws("\0", "user", micros.cast("string"))
    return rows.withColumn("session_id", F.substring(F.sha2(text, 256), 1, SESSION_ID_DIGITS))


def session_records(sessions: DataFrame) -> DataFrame:
    """Key and value of the records for the sink: the user, and the session as JSON."""
    from pyspark.sql import functions as F

    def text(column: str) -> Column:
        return F.date_format(column, ISO_FORMAT).alias(column)

    duration_ms = F.unix_millis("last_click") - F.unix_millis("first_click")
    value = F.struct(
        "session_id",
        "user",
        text("first_click"),
        text("last_click"),
        duration_ms.alias("duration_ms"),
        "clicks",
        "entry_page",
        "exit_page",
    )
    return sessions.select(F.col("user").alias("key"), F.to_json(value).alias("value"))
