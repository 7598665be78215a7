"""The transforms of `compare_topics` on rows made by hand: every kind of difference, and nothing else, is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from spark_jobs.comparison.matching import (
    CHANGED,
    EXTRA,
    HASH,
    KEY,
    MISSING,
    OFFSET,
    REORDERED,
    Rules,
    equal_pairs,
    fingerprints,
    groups_with_descents,
    paired,
    reordered,
    unequal,
)
from tests.support.spark.pieces import MARKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS[1:]  # no broker is asked

SCHEMA = (
    "topic_pair INT, partition INT, offset BIGINT, key BINARY, value BINARY, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
Headers = Sequence[tuple[str, bytes | None]] | None
Difference = tuple[str, str | None, str | None, str | None]
"""Kind, fields, place here, place there; a place is `partition:offset`."""

Found = set[Difference]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record of one side; its offset is its place in the list, unless it says."""

    key: bytes | None = None
    value: bytes | None = b"v"
    partition: int = 0
    offset: int | None = None
    second: int = 0
    headers: Headers = None


class Cases:
    """Comparisons with the same rules, done in one run: each is a pair of topics."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._sides: list[tuple[Sequence[Record], Sequence[Record]]] = []
        self._expected: list[Found] = []

    def add(self, ours: Sequence[Record], others: Sequence[Record], *expected: Difference) -> None:
        self._sides.append((ours, others))
        self._expected.append(set(expected))

    def check(self, spark: SparkSession) -> None:
        """Fails unless each comparison finds the differences that are expected, each once."""
        pairs = paired(self._fingerprints(spark, 0), self._fingerprints(spark, 1)).cache()
        found = unequal(pairs, self.rules)
        if self.rules.mode != OFFSET:
            equal = equal_pairs(pairs, self.rules)
            found = found.unionByName(reordered(spark, equal, groups_with_descents(equal)))
        results: list[list[Difference]] = [[] for _ in self._sides]
        for row in found.collect():
            ours, others = place(row.partition, row.offset), place(row.other_partition, row.other_offset)
            results[row.topic_pair].append((row.kind, row.fields, ours, others))
        pairs.unpersist()
        assert [set(result) for result in results] == self._expected
        assert all(len(set(result)) == len(result) for result in results)

    def _fingerprints(self, spark: SparkSession, side: int) -> DataFrame:
        rows = [
            (
                number,
                record.partition,
                index if record.offset is None else record.offset,
                record.key,
                record.value,
                datetime.fromtimestamp(record.second, UTC),
                None if record.headers is None else list(record.headers),
            )
            for number, sides in enumerate(self._sides)
            for index, record in enumerate(sides[side])
        ]
        return fingerprints(spark.createDataFrame(rows, SCHEMA), self.rules, is_other=side == 1)


def place(partition: int | None, offset: int | None) -> str | None:
    return None if partition is None else f"{partition}:{offset}"


A, B, C = (Record(key=key, value=b"of " + key) for key in (b"a", b"b", b"c"))
NO_VALUE, EMPTY = [("h", None)], [("h", b"")]
UNEQUAL_HEADERS: list[tuple[Headers, Headers]] = [
    (None, NO_VALUE),
    (NO_VALUE, EMPTY),
    ([("a", b"b")], [("ab", b"")]),
    ([("a", b"1"), ("b", b"2")], [("b", b"2"), ("a", b"1")]),
    ([("a", None), ("b", b"x")], [("a", b"b"), ("x", None)]),
    ([("a", b"1")], [("a", b"1"), ("a", b"1")]),
]


def test_by_key_each_kind_is_found(spark: SparkSession) -> None:
    cases = Cases(Rules())
    ours = [
        *(Record(key=b"same", value=b"%d" % number) for number in range(3)),  # 0-2
        Record(key=b"lost", value=b"1"),  # 3
        Record(key=b"changed", value=b"1"),  # 4
        Record(key=b"changed", value=b"2"),  # 5
        *(Record(key=b"moved", value=b"%d" % number) for number in range(4)),  # 6-9
        Record(key=b"nulled", value=b""),  # 10
        *(Record(value=b"without key %d" % number) for number in range(4)),  # 11-14
    ]
    others = [
        *ours[:3],  # 0-2
        Record(key=b"changed", value=b"1"),  # 3
        Record(key=b"changed", value=b"other"),  # 4
        *ours[7:10],  # 5-7
        ours[6],  # 8
        Record(key=b"nulled", value=None),  # 9
        ours[14],  # 10
        *ours[11:13],  # 11-12
        Record(key=b"new"),  # 13
        Record(value=b"without key and new"),  # 14
    ]
    cases.add(
        ours,
        others,
        (MISSING, None, "0:3", None),
        (CHANGED, "value", "0:5", "0:4"),
        (REORDERED, None, "0:6", "0:8"),
        (CHANGED, "value", "0:10", "0:9"),
        (MISSING, None, "0:13", None),
        (REORDERED, None, "0:14", "0:10"),
        (EXTRA, None, None, "0:13"),
        (EXTRA, None, None, "0:14"),
    )
    # A lost record in the middle of its key does not shift those after it.
    ours = [Record(key=b"k", value=b"%d" % number) for number in range(6)]
    cases.add(ours, [*ours[:2], *ours[3:]], (MISSING, None, "0:2", None))
    cases.add([*ours[:2], *ours[3:]], ours, (EXTRA, None, None, "0:2"))
    # A record that came twice is extra, and did not become the one that is lost.
    doubled = [*ours[:2], ours[3], ours[3], *ours[4:]]
    cases.add(ours, doubled, (MISSING, None, "0:2", None), (EXTRA, None, None, "0:3"))
    late = [Record(key=each.key, value=each.value, second=9) for each in doubled[2:4]]
    cases.add(doubled[2:4], late, *((CHANGED, "timestamp", f"0:{number}", f"0:{number}") for number in range(2)))
    # Equal records are counted.
    cases.add([A, A, A], [A, A], (MISSING, None, "0:2", None))
    cases.add([A, A, A], [A, A, A])
    # The order of records with different keys is no difference, nor is another number of partitions.
    cases.add([A, B, C], [B, A, C])
    cases.add([A, B, C], ON_TWO_PARTITIONS)
    cases.add([Record(headers=None)], [Record(headers=[])])
    for here, there in UNEQUAL_HEADERS:
        late = Record(key=b"k", headers=there, second=1)
        cases.add([Record(key=b"k", headers=here)], [late], (CHANGED, "headers,timestamp", "0:0", "0:0"))
    cases.check(spark)


def test_by_offset_a_record_is_its_place(spark: SparkSession) -> None:
    cases = Cases(Rules(mode=OFFSET, partitions=True))
    cases.add(
        [A, B, C],
        [
            Record(key=b"a", value=b"of a", offset=0),
            Record(key=b"x", value=b"of b", offset=1),
            Record(key=b"c", value=b"of c", offset=3),
            Record(key=b"c", value=b"of c", partition=1, offset=2),
        ],
        (CHANGED, "key", "0:1", "0:1"),
        (MISSING, None, "0:2", None),
        (EXTRA, None, None, "0:3"),
        (EXTRA, None, None, "1:2"),
    )
    cases.check(spark)


def test_by_hash_a_changed_record_is_missing_and_extra_and_the_order_is_that_of_the_partition(
    spark: SparkSession,
) -> None:
    cases = Cases(Rules(mode=HASH))
    cases.add(
        [A, B, B, C],
        [B, B, A, Record(key=b"c", value=b"other")],
        (REORDERED, None, "0:0", "0:2"),
        (MISSING, None, "0:3", None),
        (EXTRA, None, None, "0:3"),
    )
    cases.add([A, A, A], [A, A], (MISSING, None, "0:2", None))
    cases.add([A, B, C], ON_TWO_PARTITIONS)
    cases.check(spark)


@pytest.mark.parametrize("mode", [KEY, HASH])
def test_partitions_are_compared_as_asked(spark: SparkSession, mode: str) -> None:
    cases = Cases(Rules(mode=mode, partitions=True))
    cases.add([A, B, C], ON_TWO_PARTITIONS, (MISSING, None, "0:1", None), (EXTRA, None, None, "1:0"))
    cases.add([A, A, B], [A, A, B])
    cases.check(spark)


def test_headers_and_timestamps_are_compared_as_asked(spark: SparkSession) -> None:
    headers, neither = Cases(Rules(timestamps=False)), Cases(Rules(timestamps=False, headers=False))
    for here, there in UNEQUAL_HEADERS:
        ours, others = [Record(key=b"k", headers=here)], [Record(key=b"k", headers=there, second=1)]
        headers.add(ours, others, (CHANGED, "headers", "0:0", "0:0"))
        neither.add(ours, others)
    headers.check(spark)
    neither.check(spark)


ON_TWO_PARTITIONS = [
    Record(key=b"a", value=b"of a"),
    Record(key=b"b", value=b"of b", partition=1, offset=0),
    Record(key=b"c", value=b"of c", offset=1),
]
