"""Distances between positions in a log."""

from __future__ import annotations

from odradek.storage.offsets import LogOffsetMetadata


def test_positions_compare_within_a_segment() -> None:
    a, b = LogOffsetMetadata(10, 0, 100), LogOffsetMetadata(20, 0, 350)
    assert a.bytes_until(b) == 250
    assert not a.on_older_segment(b)


def test_segments_compare() -> None:
    a, b = LogOffsetMetadata(10, 0, 100), LogOffsetMetadata(10, 10, 0)
    assert a.on_older_segment(b)
    assert not b.on_older_segment(a)
    assert a.bytes_until(b) is None
    assert b.bytes_until(a) is None


def test_an_offset_alone_has_no_place() -> None:
    alone, placed = LogOffsetMetadata(10), LogOffsetMetadata(12, 0, 5)
    assert not alone.on_older_segment(placed)
    assert alone.bytes_until(placed) == 0
    assert placed.bytes_until(LogOffsetMetadata(14)) == 0
    assert alone.bytes_until(LogOffsetMetadata(14)) == 0
