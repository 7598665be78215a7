"""The checks on a log that is a list of batches; test_segment.py checks files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.segment import offset_index, time_index
from odradek.storage.segment.read_only_files import open_offset_index, open_time_index
from odradek.storage.verification.findings import Finding
from odradek.storage.verification.index_checks import OffsetIndexCheck, TimeIndexCheck

Batch = tuple[int, int, int]
"""Position, last offset, max timestamp."""
BASE = 100


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    batches, position, last_offset = [], 0, BASE - 1
    for _ in range(draw(st.integers(1, 8))):
        last_offset += draw(st.integers(1, 5))
        batches.append((position, last_offset, draw(st.integers(0, 50))))
        position += draw(st.integers(70, 200))
    return batches


def offset_findings(batches: list[Batch], entries: list[tuple[int, int]], damaged: int = -1) -> list[str]:
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "i"
        path.write_bytes(b"".join(offset_index.ENTRY.pack(offset - BASE, position) for offset, position in entries))
        check = OffsetIndexCheck(open_offset_index(str(path), BASE), findings.append, is_open=False)
        for number, (position, last_offset, _) in enumerate(batches):
            if number == damaged:
                check.pass_over(position)
            else:
                check.see(position, last_offset)
        check.finish()
    return [finding.message for finding in findings]


def time_findings(batches: list[Batch], entries: list[tuple[int, int]], damaged: int = -1) -> list[str]:
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "i"
        path.write_bytes(b"".join(time_index.ENTRY.pack(timestamp, offset - BASE) for timestamp, offset in entries))
        check = TimeIndexCheck(open_time_index(str(path), BASE), findings.append, is_open=False)
        for number, (position, last_offset, max_timestamp) in enumerate(batches):
            if number == damaged:
                check.pass_over(position)
            else:
                check.see(last_offset, max_timestamp)
        check.finish()
    return [finding.message for finding in findings]


def right_times(batches: list[Batch]) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for _, last_offset, max_timestamp in batches:
        if max_timestamp > max((timestamp for timestamp, _ in entries), default=-1):
            entries.append((max_timestamp, last_offset))
    return entries


@given(logs(), st.data())
def test_any_choice_of_right_entries_is_right(batches: list[Batch], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(batches[1:] or batches), unique=True)) if len(batches) > 1 else []
    assert offset_findings(batches, sorted((last_offset, position) for position, last_offset, _ in chosen)) == []
    times = right_times(batches)
    assert time_findings(batches, sorted(data.draw(st.lists(st.sampled_from(times), unique=True)))) == []


@given(logs(), st.data())
def test_damaged_batches_have_no_other_consequences(batches: list[Batch], data: st.DataObject) -> None:
    damaged = data.draw(st.integers(0, len(batches) - 1))
    assert (
        offset_findings(batches, [(last_offset, position) for position, last_offset, _ in batches[1:]], damaged) == []
    )
    assert time_findings(batches, right_times(batches), damaged) == []


@given(logs(), st.integers(BASE, BASE + 50), st.integers(0, 1600))
def test_a_lookup_through_an_entry_without_findings_misses_nothing(
    batches: list[Batch], offset: int, position: int
) -> None:
    """Compared with a simple lookup: from the position on, the first batch that reaches the target."""
    if offset_findings(batches, [(offset, position)]):
        return
    for target in range(offset, batches[-1][1] + 1):
        expected = next(batch for batch in batches if batch[1] >= target)
        assert next(batch for batch in batches if batch[0] >= position and batch[1] >= target) == expected


LOG = [(0, 104, 7), (70, 109, 5), (140, 119, 9)]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(109, 71)], "no batch starts at position 71"),
        ([(104, 70)], "the batch at position 70 begins after offset 104"),
        ([(107, 70)], "no batch ends at offset 107"),
        ([(125, 140)], "no batch ends at offset 125"),
        ([(125, 300)], "offset 125 at position 300 lies after the end of the log"),
        ([(109, 70), (109, 140)], "offset 109 at position 140 does not follow offset 109 at position 70"),
        ([(109, 70), (119, 70)], "offset 119 at position 70 does not follow offset 109 at position 70"),
        ([(99, 70)], "offset 99 at position 70 does not follow offset 99 at position -1"),
        ([(109, 70), (100, 0), (100, 0)], "2 entries of zeros: the file was not trimmed"),
    ],
)
def test_offset_entries_that_are_wrong(entries: list[tuple[int, int]], said: str) -> None:
    (message,) = offset_findings(LOG, entries)
    assert message.startswith(said)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(7, 103)], "no batch ends at offset 103"),
        ([(6, 104)], "the batch that ends at offset 104 has max timestamp 7, entry timestamp 6"),
        ([(5, 109)], "there is timestamp 7 before offset 109, entry timestamp 5"),
        ([(9, 125)], "timestamp 9 at offset 125 lies after the end of the log"),
        ([(7, 104), (7, 119)], "timestamp 7 at offset 119 does not follow timestamp 7 at offset 104"),
        ([(9, 119), (11, 109)], "timestamp 11 at offset 109 does not follow timestamp 9 at offset 119"),
        ([(7, 104), (0, 100)], "1 entries of zeros: the file was not trimmed"),
    ],
)
def test_time_entries_that_are_wrong(entries: list[tuple[int, int]], said: str) -> None:
    (message,) = time_findings(LOG, entries)
    assert message.startswith(said)


def test_an_entry_of_zeros_alone_may_be_meant() -> None:
    assert time_findings([(0, 100, 0)], [(0, 100)]) == []
