"""The latest record of each key, what compaction has done to them, and what it could remove: DataFrames in and out.

Compaction keeps the latest record of every key at its offset. A tombstone (a record without a value) may go after
`delete.retention.ms`, and its key with it. Records in the active segment, the last one, are not compacted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLACE = ("topic", "partition")
KEY = (*PLACE, "key")
SNAPSHOT_COLUMNS = (*KEY, "offset", "is_tombstone", "hash1", "hash2")

LOST = "lost"
STALE = "stale"
CHANGED = "changed"
APPEARED = "appeared"
FINDINGS = (LOST, STALE, CHANGED, APPEARED)


def keyed_records(rows: DataFrame) -> DataFrame:
    """From rows of kafka_log: the columns that the rest needs, of records with a key."""
    from pyspark.sql import functions as F

    value = F.col("value")
    hashes = (F.xxhash64(F.lit(seed), F.coalesce(value, F.lit(b""))).alias(f"hash{seed}") for seed in (1, 2))
    return rows.where(F.col("key").isNotNull()).select(
        *KEY,
        F.col("offset"),
        F.col("recordSize").cast("long").alias("size"),
        value.isNull().alias("is_tombstone"),
        *hashes,
    )


def latest_records(records: DataFrame) -> DataFrame:
    """One row for each key: its latest record, as a snapshot keeps it."""
    from pyspark.sql import functions as F

    kept = ("is_tombstone", "hash1", "hash2")
    return records.groupBy(*KEY).agg(
        F.max("offset").alias("offset"), *(F.max_by(name, "offset").alias(name) for name in kept)
    )


def findings(before: DataFrame, after: DataFrame, starts: DataFrame) -> DataFrame:
    """Keys whose latest record compaction has not kept, from `latest_records` of both.

    `starts`: topic, partition, log_start: records below it were deleted, by retention or DeleteRecords.
    """
    from pyspark.sql import functions as F

    # The last record of a partition is the latest of its key: what comes after it was written later.
    ends = before.groupBy(*PLACE).agg((F.max("offset") + 1).alias("end"))
    old = before.select(*KEY, F.col("offset").alias("before"), "is_tombstone", "hash1", "hash2")
    new = after.select(
        *KEY,
        F.col("offset").alias("after"),
        *(F.col(name).alias(f"after_{name}") for name in ("is_tombstone", "hash1", "hash2")),
    )
    joined = old.join(new, [*KEY], "full_outer").join(F.broadcast(ends), [*PLACE], "inner")
    joined = joined.join(F.broadcast(starts), [*PLACE], "left").fillna(0, ["log_start"])
    same = (
        (F.col("hash1") == F.col("after_hash1"))
        & (F.col("hash2") == F.col("after_hash2"))
        & (F.col("is_tombstone") == F.col("after_is_tombstone"))
    )
    later = F.col("after") >= F.col("end")
    is_lost = F.col("after").isNull() & ~F.col("is_tombstone") & (F.col("before") >= F.col("log_start"))
    kind = (
        F.when(is_lost, F.lit(LOST))
        .when(F.col("after").isNull() | later, F.lit(None))
        .when(F.col("before").isNull() | (F.col("after") > F.col("before")), F.lit(APPEARED))
        .when(F.col("after") < F.col("before"), F.lit(STALE))
        .when(~same, F.lit(CHANGED))
    )
    found = joined.withColumn("kind", kind).where(F.col("kind").isNotNull())
    return found.select(
        "kind",
        *KEY,
        F.col("before").alias("offset_before"),
        F.col("after").alias("offset_after"),
        F.col("is_tombstone").alias("was_tombstone"),
    )


def savings(records: DataFrame, active: DataFrame) -> DataFrame:
    """For each partition, what it holds and what compaction could remove.

    `active`: topic, partition, active_base: the first offset of the active segment. Now: superseded records before it,
    by records before it. Later: all that are superseded, when the active segment has rolled. Sizes are bytes of
    records without compression.
    """
    from pyspark.sql import functions as F

    rows = records.join(F.broadcast(active), [*PLACE], "left").fillna(0, ["active_base"])
    is_closed = F.col("offset") < F.col("active_base")
    closed_offset = F.when(is_closed, F.col("offset"))
    keys = rows.groupBy(*KEY).agg(
        F.count("*").alias("records"),
        F.sum("size").alias("bytes"),
        F.max_by("size", "offset").alias("latest_bytes"),
        F.max_by("is_tombstone", "offset").alias("is_tombstone"),
        F.count(closed_offset).alias("closed_records"),
        F.sum(F.when(is_closed, F.col("size"))).alias("closed_bytes"),
        F.max_by(F.when(is_closed, F.col("size")), closed_offset).alias("closed_latest_bytes"),
    )

    def total(column: Column, name: str) -> Column:
        return F.coalesce(F.sum(column), F.lit(0)).alias(name)

    closed = F.col("closed_records") > 0
    return keys.groupBy(*PLACE).agg(
        F.count("*").alias("keys"),
        total(F.col("records"), "records"),
        total(F.col("bytes"), "bytes"),
        F.count(F.when(F.col("is_tombstone"), F.lit(1))).alias("tombstones"),
        total(F.when(closed, F.col("closed_records") - 1), "removable_now"),
        total(F.when(closed, F.col("closed_bytes") - F.col("closed_latest_bytes")), "removable_now_bytes"),
        total(F.col("records") - 1, "removable_later"),
        total(F.col("bytes") - F.col("latest_bytes"), "removable_later_bytes"),
    )
