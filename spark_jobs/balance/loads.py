"""Loads of replicas from rows of the data source kafka_log: DataFrames in, DataFrames out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

REPLICA = ("logDir", "topic", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLoad:
    """What one replica holds. Bytes are those of the batches as they are stored."""

    broker_id: int
    topic: str
    partition: int
    bytes: int
    uncompressed_bytes: int
    records: int
    first_ms: int | None  # the smallest and the largest timestamp
    last_ms: int | None
    compressions: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """The time that the records are spread over, at least one second."""
        if self.first_ms is None or self.last_ms is None:
            return 1.0
        return max(1.0, (self.last_ms - self.first_ms) / 1_000)

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyKey:
    """A key with its share of a topic."""

    topic: str
    key: bytes | None
    records: int
    bytes: int  # uncompressed
    share: float  # of the topic's uncompressed bytes


def replica_loads(rows: DataFrame) -> DataFrame:
    """One row for each replica, from the rows of all replicas with those of control batches."""
    from pyspark.sql import functions as F

    is_record = ~F.col("isControl")
    time_ms = F.when(is_record, F.unix_millis("timestamp"))
    batches = rows.groupBy(*REPLICA, "batchOffset").agg(
        F.max("batchSize").cast("long").alias("bytes"),
        F.sum("recordSize").alias("uncompressed_bytes"),
        F.count(F.when(is_record, F.lit(1))).alias("records"),
        F.min(time_ms).alias("first_ms"),
        F.max(time_ms).alias("last_ms"),
        F.max("compression").alias("compression"),
    )
    sums = [F.sum(name).alias(name) for name in ("bytes", "uncompressed_bytes", "records")]
    return batches.groupBy(*REPLICA).agg(
        *sums,
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
        F.sort_array(F.collect_set("compression")).alias("compressions"),
    )


def heaviest_keys(rows: DataFrame, number: int) -> DataFrame:
    """The `number` keys of each topic with the most bytes, from the rows of one replica of each partition."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = rows.groupBy("topic", "key").agg(F.count("*").alias("records"), F.sum("recordSize").alias("bytes"))
    total = F.sum("bytes").over(Window.partitionBy("topic"))
    place = F.row_number().over(Window.partitionBy("topic").orderBy(F.desc("bytes"), F.desc("records"), "key"))
    ranked = keys.withColumn("share", F.col("bytes") / total).withColumn("place", place)
    return ranked.where(F.col("place") <= number).orderBy("topic", "place")


def loads_of_rows(found: DataFrame, broker_ids: dict[str, int]) -> list[ReplicaLoad]:
    """Collected, with the brokers that the directories belong to."""
    return [
        ReplicaLoad(
            broker_id=broker_ids[row.logDir],
            topic=row.topic,
            partition=row.partition,
            bytes=row.bytes,
            uncompressed_bytes=row.uncompressed_bytes,
            records=row.records,
            first_ms=row.first_ms,
            last_ms=row.last_ms,
            compressions=tuple(row.compressions),
        )
        for row in found.collect()
    ]


def keys_of_rows(found: DataFrame) -> list[HeavyKey]:
    """Collected."""
    return [
        HeavyKey(
            topic=row.topic,
            key=None if row.key is None else bytes(row.key),
            records=row.records,
            bytes=row.bytes,
            share=row.share,
        )
        for row in found.collect()
    ]


def largest_of_each(loads: Iterable[ReplicaLoad]) -> dict[tuple[str, int], ReplicaLoad]:
    """The replica of each partition that has the most: others may be behind."""
    largest: dict[tuple[str, int], ReplicaLoad] = {}
    for load in loads:
        name = load.topic, load.partition
        if name not in largest or load.bytes > largest[name].bytes:
            largest[name] = load
    return largest
