"""Counts of verdicts and their lines."""

from __future__ import annotations

from spark_jobs.validation.counts import MOST_KINDS, Counts


def test_the_most_frequent_reasons_come_first() -> None:
    counts = Counts()
    counts.add({None: 7, "b": 1, "a": 1})
    counts.add({None: 1, "c": 2})
    assert (counts.good, counts.bad) == (8, 4)
    assert counts.lines() == ["  2 x c", "  1 x a", "  1 x b"]


def test_rare_reasons_are_one_line() -> None:
    counts = Counts()
    counts.add({f"reason {number:02}": 2 for number in range(MOST_KINDS)})
    assert len(counts.lines()) == MOST_KINDS
    counts.add({"y": 1, "z": 1})
    assert len(counts.lines()) == MOST_KINDS + 1
    assert counts.lines("")[-1] == "2 x 2 other reasons"
