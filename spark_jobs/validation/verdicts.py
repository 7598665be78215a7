"""The validation of a DataFrame: a verdict for each record, and the rows for Spark's kafka sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.common.source_position import SOURCE_HEADER
from spark_jobs.validation.json_schema import Rules, Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REASON_HEADER = "odradek.reason"
TIMESTAMP_HEADER = "odradek.timestamp"
"""The timestamp of the record that was read, in milliseconds: Spark 4.0's sink has no column for it."""
ADDED_HEADERS = (SOURCE_HEADER, TIMESTAMP_HEADER, REASON_HEADER)
VERDICT = "kind string, text string"


def with_verdicts(records: DataFrame, rules: Rules) -> DataFrame:
    """The rows of Spark's kafka source with a column `verdict` (`VERDICT`), null for good ones."""
    from pyspark.sql import functions as F

    def judge(key: bytearray | None, value: bytearray | None) -> Verdict | None:
        return rules.verdict(None if key is None else bytes(key), None if value is None else bytes(value))

    return records.withColumn("verdict", F.udf(judge, VERDICT)("key", "value"))


def outgoing(judged: DataFrame, *, output_topic: str, dead_letter_topic: str, keep_partitions: bool) -> DataFrame:
    """The rows for the kafka sink: key, value, headers, topic and, if they are kept, partition."""
    from pyspark.sql import functions as F

    is_good = F.col("verdict").isNull()
    position = F.concat_ws(":", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))
    added = [
        _header(SOURCE_HEADER, position),
        _header(TIMESTAMP_HEADER, F.unix_millis("timestamp").cast("string")),
    ]
    reason = F.array(_header(REASON_HEADER, F.col("verdict.text")))
    headers = F.concat(
        F.coalesce(F.col("headers"), F.array().cast(HEADERS)),
        F.array(*added).cast(HEADERS),
        F.when(is_good, F.array().cast(HEADERS)).otherwise(reason.cast(HEADERS)),
    )
    columns = [
        F.col("key"),
        F.col("value"),
        headers.alias("headers"),
        F.when(is_good, F.lit(output_topic)).otherwise(F.lit(dead_letter_topic)).alias("topic"),
    ]
    if keep_partitions:
        columns.append(F.when(is_good, F.col("partition")).cast("int").alias("partition"))
    return judged.select(*columns)


HEADERS = "array<struct<key:string,value:binary>>"


def _header(name: str, text: Column) -> Column:
    from pyspark.sql import functions as F

    return F.struct(F.lit(name).alias("key"), text.cast("binary").alias("value"))


def counts_by_kind(judged: DataFrame) -> dict[str | None, int]:
    """How many records have each kind of verdict; None: the good ones."""
    return {row.kind: row["count"] for row in judged.groupBy("verdict.kind").count().collect()}
