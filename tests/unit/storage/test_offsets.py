"""Distances between positions in a log."""

from __future__ import annotations

from odradek.storage.offsets import LogOffsetMetadata


def test_positions_compare_within_a_segment() -> None:
    a, b = LogOffsetMetadata(10, 0, 100), LogOffsetMetadata(20, 0, 350)
    assert b.position_diff(a) == 250
    assert a.on_same_segment(b)
    assert not a.on_older_segment(b)


def test_segments_compare() -> None:
    a, b = LogOffsetMetadata(10, 0, 100), LogOffsetMetadata(10, 10, 0)
    assert a.on_older_segment(b)
    assert not b.on_older_segment(a)


def test_an_offset_alone_has_no_place() -> None:
    alone, placed = LogOffsetMetadata(10), LogOffsetMetadata(12, 0, 5)
    assert alone.message_offset_only
    assert not alone.on_same_segment(placed)
    assert not alone.on_older_segment(placed)
    assert placed.position_diff(alone) == 1
    assert alone.position_diff(placed) == 0
