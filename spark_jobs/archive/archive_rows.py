"""The rows of an archive, from the columns of Spark's kafka source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def archive_rows(
    records: DataFrame,
    *,
    partition_by: Sequence[str] = ("date",),
    timezone: str = "UTC",
    key_format: str = "binary",
    value_format: str = "binary",
    schema: StructType | str | None = None,
) -> DataFrame:
    """The rows of the archive, from the columns of Spark's kafka source. The session's time zone is UTC.

    A value that is no JSON of this schema has null in `data` and is kept as it is in `value`.
    """
    from pyspark.sql import functions as F

    rows = records
    if key_format == "string":
        rows = rows.withColumn("key", F.col("key").cast("string"))
    if value_format in ("string", "json"):
        rows = rows.withColumn("value", F.col("value").cast("string"))
    if value_format == "json":
        assert schema is not None
        rows = rows.withColumn("data", F.from_json("value", schema))
    there = F.from_utc_timestamp("timestamp", timezone)
    if "date" in partition_by:
        rows = rows.withColumn("date", F.to_date(there))
    if "hour" in partition_by:
        rows = rows.withColumn("hour", F.hour(there))
    return rows


def schema_of(text: str | None) -> StructType | str | None:
    """A schema in Spark's JSON form, or as DDL, which Spark reads itself. Raises: JobError."""
    if text is None or not text.startswith("{"):
        return text
    from pyspark.sql.types import StructType

    try:
        return StructType.fromJson(json.loads(text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise JobError(f"--schema is no schema in Spark's JSON form: {error}") from None
