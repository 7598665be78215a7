"""What the job prints: a table of savings, and findings one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.common.plain_text import key_text, size_text, table
from spark_jobs.compaction.latest import APPEARED, CHANGED, FINDINGS, LOST, STALE

COLUMNS = ("partition", "records", "size", "keys", "tombstones", "removable now", "size", "removable later", "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Of one partition; sizes are of records without compression."""

    topic: str
    partition: int
    keys: int
    records: int
    bytes: int
    tombstones: int  # keys whose latest record is one
    removable_now: int
    removable_now_bytes: int
    removable_later: int
    removable_later_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A key whose latest record was not kept."""

    kind: str
    topic: str
    partition: int
    key: bytes
    offset_before: int | None
    offset_after: int | None
    was_tombstone: bool | None


def savings_lines(rows: Sequence[Savings]) -> list[str]:
    """The table, with a total if there are several partitions."""
    cells = [_cells(f"{row.topic}-{row.partition}", [row]) for row in rows]
    if len(rows) > 1:
        cells.append(_cells("all", rows))
    return table(cells, COLUMNS, left=1)


def _cells(name: str, rows: Sequence[Savings]) -> list[str]:
    return [
        name,
        f"{sum(row.records for row in rows):,}",
        size_text(sum(row.bytes for row in rows)),
        f"{sum(row.keys for row in rows):,}",
        f"{sum(row.tombstones for row in rows):,}",
        f"{sum(row.removable_now for row in rows):,}",
        size_text(sum(row.removable_now_bytes for row in rows)),
        f"{sum(row.removable_later for row in rows):,}",
        size_text(sum(row.removable_later_bytes for row in rows)),
    ]


def finding_line(finding: Finding) -> str:
    """One finding: `lost      users-0 "k17": its latest record was at offset 123`."""
    latest = "tombstone" if finding.was_tombstone else "latest record"
    words = {
        LOST: f"its latest record was at offset {finding.offset_before}",
        STALE: f"its {latest} was at offset {finding.offset_before}, and the latest is now at {finding.offset_after}",
        CHANGED: f"the value at offset {finding.offset_before} is another one",
        APPEARED: f"the record at offset {finding.offset_after} was not there before",
    }
    kind = finding.kind.ljust(max(map(len, FINDINGS)))
    return f"{kind}  {finding.topic}-{finding.partition} {key_text(finding.key)}: {words[finding.kind]}"


def verdict(counts: Mapping[str, int], keys: int) -> str:
    """The last line of an audit."""
    found = [f"{counts[kind]:,} {kind}" for kind in FINDINGS if counts.get(kind)]
    if found:
        return f"wrong: {', '.join(found)} of {keys:,} keys"
    return f"nothing is wrong: the latest records of {keys:,} keys are there, or were replaced or deleted rightly"
