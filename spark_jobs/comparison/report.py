"""What the job prints: a table of counts for each pair of topics, and the first differences one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_jobs.common.plain_text import table
from spark_jobs.comparison.matching import CHANGED, EXTRA, KINDS, MISSING, REORDERED

COLUMNS = ("topic", "other topic", "records", "other records", "equal", *KINDS)
EQUAL_EXCEPT = {"timestamp": "--no-compare-timestamps", "headers": "--no-compare-headers"}


@dataclass(slots=True, kw_only=True)
class Counts:
    """Of one pair of topics."""

    topic: str
    other_topic: str
    records: int = 0
    other_records: int = 0
    equal: int = 0  # in any order
    differences: dict[str, int] = field(default_factory=dict)  # by kind
    changed_fields: dict[str, int] = field(default_factory=dict)  # changed records by what has changed: `value,headers`

    @property
    def are_equal(self) -> bool:
        return not any(self.differences.values())

    def cells(self) -> list[str]:
        numbers = [self.records, self.other_records, self.equal, *(self.differences.get(kind, 0) for kind in KINDS)]
        return [self.topic, self.other_topic, *(f"{number:,}" for number in numbers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a record is."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic} {self.partition}:{self.offset}"


def summary(counts: Sequence[Counts]) -> list[str]:
    """The table, what has changed in changed records, and the verdict."""
    lines = table([each.cells() for each in counts], COLUMNS, left=2)
    for each in counts:
        lines += _changes(each)
    total = {kind: sum(each.differences.get(kind, 0) for each in counts) for kind in KINDS}
    found = [f"{total[kind]:,} {kind}" for kind in KINDS if total[kind]]
    lines.append(f"different: {', '.join(found)}" if found else "equal")
    return lines


def _changes(counts: Counts) -> list[str]:
    """Which fields the changed records differ in, and which option passes over the only field that differs."""
    lines = []
    for fields, number in sorted(counts.changed_fields.items(), key=lambda item: (-item[1], item[0])):
        hint = ""
        if number == counts.records and fields in EQUAL_EXCEPT:
            hint = f": all records of the topic; {EQUAL_EXCEPT[fields]} does not compare them"
        lines.append(f"{counts.topic}: {number:,} changed in {fields.replace(',', ', ')}{hint}")
    return lines


def difference_line(kind: str, fields: str | None, ours: Place | None, other: Place | None) -> str:
    """One difference: `changed    events 0:17 - copy 0:17 (value)`."""
    words = {
        MISSING: f"{ours}",
        EXTRA: f"{other}",
        CHANGED: f"{ours} - {other} ({(fields or '').replace(',', ', ')})",
        REORDERED: f"{ours} - {other}",
    }
    return f"{kind.ljust(max(map(len, KINDS)))}  {words[kind]}"


def counts_of(
    pairs: Sequence[tuple[str, str]],
    compared: Iterable[Mapping[str, int]],
    differences: Iterable[tuple[int, str, str | None, int]],
) -> list[Counts]:
    """The counts of each pair of topics.

    `compared`: rows with topic_pair, records, other_records, equal. `differences`: topic_pair, kind, fields, count.
    """
    counts = [Counts(topic=topic, other_topic=other) for topic, other in pairs]
    for row in compared:
        each = counts[row["topic_pair"]]
        each.records, each.other_records, each.equal = row["records"], row["other_records"], row["equal"]
    for topic_pair, kind, fields, number in differences:
        each = counts[topic_pair]
        each.differences[kind] = each.differences.get(kind, 0) + number
        if fields:
            each.changed_fields[fields] = each.changed_fields.get(fields, 0) + number
    return counts
