"""Records of two sides become fingerprints, fingerprints become pairs, pairs become differences.

Every step is a DataFrame of fixed-width columns: Spark sorts and aggregates them on disk when they do not fit into
memory. Two records count as equal when the hashes of what is compared are equal: key and value have 128 bits each
(two xxHash64 with different seeds), headers 64. These hashes find errors, they do not withstand forgery.

1. Equal records of the same group are paired: the first with the first, the second with the second.
2. What is left of a group is paired by its order, and has changed; repetitions of a paired record are not. What is
   left then is missing or extra.
3. Equal pairs are out of order where the other side has them in another order (`order.py`).

The group is what identifies a record: its key, its partition and offset, or all of its content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.common.code_archive import send_code
from spark_jobs.comparison.order import Row, rows_out_of_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KEY = "key"
OFFSET = "offset"
HASH = "hash"
MODES = (KEY, OFFSET, HASH)

MISSING = "missing"
EXTRA = "extra"
CHANGED = "changed"
REORDERED = "reordered"
KINDS = (MISSING, EXTRA, CHANGED, REORDERED)
FIELDS = (KEY, "value", "headers", "timestamp")

CONTENT = ("key1", "key2", "value1", "value2", "headers_hash", "compared_timestamp")
GROUP = ("topic_pair", "group1", "group2")
PLACE = ("partition", "offset", "timestamp_ms")
ORDER_GROUP = ("topic_pair", "order1", "order2", "partition", "other_partition")
DIFFERENCE_COLUMNS = (
    "topic_pair",
    "kind",
    "fields",
    *PLACE,
    *(f"other_{name}" for name in PLACE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What identifies a record, and what of it is compared."""

    mode: str = KEY
    headers: bool = True
    timestamps: bool = True
    partitions: bool = False  # a record must be in the same partition; always so by offset


def fingerprints(records: DataFrame, rules: Rules, *, is_other: bool) -> DataFrame:
    """From rows of a kafka source with a column `topic_pair`: the columns that the comparison needs."""
    from pyspark.sql import functions as F

    has_key = F.col("key").isNotNull()
    zero = F.lit(0).cast("long")

    def hashed(seed: int, column: Column) -> Column:
        return F.xxhash64(F.lit(seed), column)

    value = F.col("value")
    rows = records.select(
        F.col("topic_pair").cast("int"),
        F.lit(is_other).alias("is_other"),
        F.col("partition").cast("int"),
        F.col("offset").cast("long"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
        has_key.alias("has_key"),
        *(F.when(has_key, hashed(seed, F.col("key"))).otherwise(zero).alias(f"key{seed}") for seed in (1, 2)),
        *(F.when(value.isNotNull(), hashed(seed, value)).otherwise(zero).alias(f"value{seed}") for seed in (1, 2)),
        (headers_hash() if rules.headers else zero).alias("headers_hash"),
    )
    return rows.select(
        "*",
        (F.col("timestamp_ms") if rules.timestamps else zero).alias("compared_timestamp"),
        *(column.alias(f"group{seed}") for seed, column in enumerate(_group(rules), 1)),
    )


def headers_hash() -> Column:
    """Of the headers in their order; a record without headers may have none or an empty list of them."""
    from pyspark.sql import functions as F

    # xxhash64 passes over nulls: a flag keeps a header without a value apart from one that is not there.
    flagged = F.transform("headers", lambda header: F.struct(header["key"], header["value"].isNull(), header["value"]))
    return F.when(F.size("headers") > 0, F.xxhash64(flagged)).otherwise(F.lit(0).cast("long"))


def _group(rules: Rules) -> list[Column]:
    """Two columns that identify a record together; records without a key are identified by their content."""
    from pyspark.sql import functions as F

    partition = F.col("partition").cast("long") if rules.partitions else F.lit(0).cast("long")
    if rules.mode == OFFSET:
        return [F.col("partition").cast("long"), F.col("offset")]
    content = [F.xxhash64(F.lit(seed), partition, "has_key", *CONTENT) for seed in (1, 2)]
    if rules.mode == HASH:
        return content
    by_key = [F.xxhash64(F.lit(seed), partition, f"key{seed}") for seed in (1, 2)] if rules.partitions else None
    keys = by_key or [F.col("key1"), F.col("key2")]
    return [F.when(F.col("has_key"), key).otherwise(whole) for key, whole in zip(keys, content, strict=True)]


def paired(ours: DataFrame, others: DataFrame) -> DataFrame:
    """One row for each record of each side: with its equal of the other side, or with nulls in its place.

    Equal records of one group are paired in the order of their places.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    content = [*GROUP, "has_key", *CONTENT]
    rows = ours.unionByName(others).repartition(*GROUP)
    order = Window.partitionBy(*content, "is_other").orderBy("partition", "offset")
    return _side_by_side(rows.withColumn("occurrence", F.row_number().over(order)), [*content, "occurrence"])


def _side_by_side(rows: DataFrame, keys: list[str], *, also: tuple[str, ...] = ()) -> DataFrame:
    """The rows of both sides with the same keys as one row; each side has at most one."""
    from pyspark.sql import functions as F

    carried = (*PLACE, *also)
    sides = [
        F.max(F.when(F.col("is_other") == is_other, F.col(name))).alias(f"{prefix}{name}")
        for is_other, prefix in ((False, ""), (True, "other_"))
        for name in carried
    ]
    return rows.groupBy(*keys).agg(*sides)


def unequal(pairs: DataFrame, rules: Rules) -> DataFrame:
    """Differences of the kinds missing, extra and changed."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    is_other = F.col("offset").isNull()
    left_over = pairs.where(is_other | F.col("other_offset").isNull()).select(
        *GROUP,
        "has_key",
        "occurrence",
        is_other.alias("is_other"),
        *(F.coalesce(name, f"other_{name}").alias(name) for name in PLACE),
        *CONTENT,
    )
    # The first of equal records is paired if the other side has any: without it, those left over are repetitions.
    equals = Window.partitionBy(*GROUP, "has_key", *CONTENT, "is_other")
    repeated = F.min("occurrence").over(equals) > 1
    alone = F.when(repeated, F.col("is_other")).alias("alone_on")  # not null: paired with none of the other side
    order = Window.partitionBy(*GROUP, "alone_on", "is_other").orderBy("partition", "offset")
    numbered = left_over.select("*", alone).withColumn("occurrence", F.row_number().over(order))
    rows = _side_by_side(numbered, [*GROUP, "alone_on", "occurrence"], also=CONTENT)
    ours, others = F.col("offset").isNotNull(), F.col("other_offset").isNotNull()
    kind = F.when(ours & others, F.lit(CHANGED)).when(ours, F.lit(MISSING)).otherwise(F.lit(EXTRA))
    return rows.withColumn("kind", kind).withColumn("fields", _changed_fields(rules)).select(*DIFFERENCE_COLUMNS)


def _changed_fields(rules: Rules) -> Column:
    """What has changed, in a text such as `value,timestamp`; null if nothing has."""
    from pyspark.sql import functions as F

    columns = {KEY: CONTENT[:2], "value": CONTENT[2:4], "headers": CONTENT[4:5], "timestamp": CONTENT[5:]}
    texts = []
    for field in FIELDS:
        differs = F.lit(False)
        for name in columns[field]:
            differs = differs | (F.col(name) != F.col(f"other_{name}"))
        texts.append(F.when(differs, F.lit(field)))
    text = F.concat_ws(",", *texts)
    return F.when(F.col("kind") == CHANGED, text)


def equal_pairs(pairs: DataFrame, rules: Rules) -> DataFrame:
    """The equal records, with the columns that say whose order they are compared in.

    Order means that of offsets within a partition; by key, only that of records with the same key.
    """
    from pyspark.sql import functions as F

    zero = F.lit(0).cast("long")
    has_order = F.lit(rules.mode == KEY) & F.col("has_key")
    return pairs.where(F.col("offset").isNotNull() & F.col("other_offset").isNotNull()).select(
        "topic_pair",
        *(F.when(has_order, F.col(f"group{n}")).otherwise(zero).alias(f"order{n}") for n in (1, 2)),
        *(*PLACE, *(f"other_{name}" for name in PLACE)),
    )


def groups_with_descents(equal: DataFrame) -> DataFrame:
    """The groups of equal records (`ORDER_GROUP`) whose order is another one on the other side."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = F.lag("other_offset").over(Window.partitionBy(*ORDER_GROUP).orderBy("offset"))
    return equal.withColumn("before", before).where("other_offset < before").select(*ORDER_GROUP).distinct()


def reordered(spark: SparkSession, equal: DataFrame, groups: DataFrame) -> DataFrame:
    """Differences of the kind reordered, in groups with descents: these are looked at record by record, in Python."""
    from pyspark.sql import functions as F

    send_code(spark.sparkContext)
    columns = (*ORDER_GROUP, "offset", "timestamp_ms", "other_timestamp_ms", "other_offset")
    candidates = equal.join(groups, [*ORDER_GROUP], "left_semi").select(*columns)
    in_order = candidates.repartition(*ORDER_GROUP).sortWithinPartitions(*ORDER_GROUP, "offset")
    found = spark.createDataFrame(in_order.rdd.mapPartitions(_rows_out_of_order), in_order.schema)
    kind, fields = F.lit(REORDERED).alias("kind"), F.lit(None).cast("string").alias("fields")
    return found.select("*", kind, fields).select(*DIFFERENCE_COLUMNS)


def _rows_out_of_order(rows: Iterable[Row]) -> Iterable[Row]:
    return rows_out_of_order(rows, len(ORDER_GROUP))
