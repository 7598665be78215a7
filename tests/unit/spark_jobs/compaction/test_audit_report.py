from __future__ import annotations

from dataclasses import replace

from spark_jobs.compaction.latest import APPEARED, CHANGED, LOST, STALE
from spark_jobs.compaction.report import Finding, Savings, finding_line, savings_lines, verdict

ROW = Savings(
    topic="users",
    partition=0,
    keys=1_000,
    records=1_500,
    bytes=4_096,
    tombstones=3,
    removable_now=400,
    removable_now_bytes=1_024,
    removable_later=500,
    removable_later_bytes=2_048,
)
FINDING = Finding(
    kind=LOST,
    topic="users",
    partition=0,
    key=b"ann",
    offset_before=7,
    offset_after=None,
    was_tombstone=False,
)


def test_savings_are_a_table_with_a_total() -> None:
    assert [line.split() for line in savings_lines([ROW, replace(ROW, partition=1)])[1:]] == [
        ["users-0", "1,500", "4.0", "KiB", "1,000", "3", "400", "1.0", "KiB", "500", "2.0", "KiB"],
        ["users-1", "1,500", "4.0", "KiB", "1,000", "3", "400", "1.0", "KiB", "500", "2.0", "KiB"],
        ["all", "3,000", "8.0", "KiB", "2,000", "6", "800", "2.0", "KiB", "1,000", "4.0", "KiB"],
    ]
    assert len(savings_lines([ROW])) == 2


def test_a_finding_is_one_line() -> None:
    stale = replace(FINDING, kind=STALE, offset_after=4)
    changed = replace(FINDING, kind=CHANGED, offset_after=7)
    appeared = replace(FINDING, kind=APPEARED, offset_before=None, offset_after=5, was_tombstone=None)
    moved = "at offset 7, and the latest is now at 4"
    assert finding_line(FINDING) == 'lost      users-0 "ann": its latest record was at offset 7'
    assert finding_line(stale) == f'stale     users-0 "ann": its latest record was {moved}'
    assert finding_line(replace(stale, was_tombstone=True)) == f'stale     users-0 "ann": its tombstone was {moved}'
    assert finding_line(changed) == 'changed   users-0 "ann": the value at offset 7 is another one'
    assert finding_line(appeared) == 'appeared  users-0 "ann": the record at offset 5 was not there before'


def test_the_verdict() -> None:
    assert verdict({LOST: 2, CHANGED: 1_000}, 5_000) == "wrong: 2 lost, 1,000 changed of 5,000 keys"
    assert verdict({}, 5).startswith("nothing is wrong: the latest records of 5 keys are there")
