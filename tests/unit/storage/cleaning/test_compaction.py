"""The rules of compaction. Tests have the names of LogCleanerManagerTest and LogCleanerTest where possible."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from odradek.storage.cleaning.compaction import (
    CleanableRange,
    OffsetsToClean,
    SegmentSizes,
    cleanable_offsets,
    cleanable_range,
    dirty_segments,
    group_segments,
    is_filthier,
    max_compaction_delay_ms,
)

NOW = 1_000_000


@dataclass
class Segment:
    base_offset: int
    size: int = 100
    largest_timestamp: int = 0


SEGMENTS = [Segment(0), Segment(10), Segment(20), Segment(30)]


def offsets(checkpoint: int | None, segments: list[Segment] = SEGMENTS, **changes: int) -> OffsetsToClean:
    values = {
        "log_start_offset": 0,
        "log_end_offset": 40,
        "last_stable_offset": 40,
        "min_compaction_lag_ms": 0,
        "now_ms": NOW,
    }
    return cleanable_offsets(checkpoint, segments, **(values | changes))


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [(None, (5, False)), (5, (5, False)), (4, (5, True)), (40, (40, False)), (41, (5, True)), (20, (20, False))],
)
def test_first_dirty_offset_is_the_checkpoint_if_the_log_has_it(
    checkpoint: int | None, expected: tuple[int, bool]
) -> None:
    found = offsets(checkpoint, log_start_offset=5)
    assert (found.first_dirty_offset, found.force_update_checkpoint) == expected


@pytest.mark.parametrize(("stable", "expected"), [(40, 30), (30, 30), (29, 29), (25, 25), (3, 3)])
def test_cleanable_offsets_end_at_the_active_segment_and_the_last_stable_offset(stable: int, expected: int) -> None:
    assert offsets(None, last_stable_offset=stable).first_uncleanable_offset == expected


def test_first_uncleanable_offset_is_not_below_the_first_dirty_one() -> None:
    assert offsets(35).first_uncleanable_offset == 35
    assert offsets(25, last_stable_offset=22).first_uncleanable_offset == 25


@pytest.mark.parametrize(
    ("ages", "checkpoint", "expected"),
    [
        ([100, 100, 100], 0, 30),
        ([100, 99, 100], 0, 10),
        ([99, 100, 100], 0, 0),
        ([99, 100, 100], 10, 30),
        ([99, 100, 100], 5, 5),
        ([100, 100, 99], None, 20),
    ],
)
def test_cleanable_offsets_for_time(ages: list[int], checkpoint: int | None, expected: int) -> None:
    segments = [Segment(10 * index, 100, NOW - age) for index, age in enumerate([*ages, 0])]
    assert offsets(checkpoint, segments, min_compaction_lag_ms=100).first_uncleanable_offset == expected


def test_dirty_segments_begin_with_the_one_that_holds_the_offset() -> None:
    assert [s.base_offset for s in dirty_segments(SEGMENTS, 0)] == [0, 10, 20]
    assert [s.base_offset for s in dirty_segments(SEGMENTS, 19)] == [10, 20]
    assert [s.base_offset for s in dirty_segments(SEGMENTS, 29)] == [20]
    assert list(dirty_segments(SEGMENTS, 30)) == list(dirty_segments(SEGMENTS, 99)) == []
    assert [s.base_offset for s in dirty_segments(SEGMENTS[1:], 3)] == [10, 20]


@pytest.mark.parametrize(
    ("first_dirty", "uncleanable", "end", "clean", "cleanable"),
    [
        (0, 30, 30, 0, 300),
        (0, 29, 20, 0, 200),
        (0, 20, 20, 0, 200),
        (0, 9, 0, 0, 0),
        (15, 30, 30, 200, 200),
        (20, 30, 30, 200, 100),
        (30, 30, 30, 300, 0),
        (35, 35, 30, 400, 0),
        (25, 25, 20, 300, 0),
    ],
)
def test_range_ends_with_whole_segments(
    first_dirty: int, uncleanable: int, end: int, clean: int, cleanable: int
) -> None:
    found = cleanable_range(SEGMENTS, OffsetsToClean(first_dirty, uncleanable, False), 0)
    assert found == CleanableRange(first_dirty, end, clean, cleanable, 0)


@pytest.mark.parametrize(
    ("timestamps", "lag", "expected"),
    [
        ([NOW - 101, NOW - 50], 100, 1),
        ([NOW - 100], 100, 0),
        ([-1, 0], 100, 0),
        ([], 100, 0),
        ([NOW - 5], -7, 5),
        ([1], 2**63 - 1, 0),
    ],
)
def test_max_compaction_delay(timestamps: list[int], lag: int, expected: int) -> None:
    assert max_compaction_delay_ms(timestamps, lag, NOW) == expected


def ranged(clean: int, cleanable: int, *, delay_ms: int = 0) -> CleanableRange:
    return CleanableRange(0, 10, clean, cleanable, delay_ms)


def test_filthiest_log_has_the_highest_ratio_of_those_that_are_due() -> None:
    assert is_filthier(ranged(60, 40), 0.3, None)
    assert is_filthier(ranged(40, 60), 0.5, ranged(60, 40))
    assert not is_filthier(ranged(60, 40), 0.3, ranged(60, 40)), "the first of equals stays"
    assert not is_filthier(ranged(20, 80), 0.9, None), "it is not due"
    assert not is_filthier(ranged(20, 80), 0.9, ranged(60, 40))
    assert not is_filthier(ranged(50, 50), 0.5, None)
    assert not is_filthier(ranged(0, 0), -1.0, None)


def test_log_that_must_be_cleaned_now_is_due_whatever_its_ratio() -> None:
    assert is_filthier(ranged(99, 1, delay_ms=1), 0.5, None)
    assert not is_filthier(ranged(100, 0, delay_ms=1), 0.5, None)


def sizes(*log_bytes: int, index: int = 8, time_index: int = 12, step: int = 10) -> list[SegmentSizes]:
    return [SegmentSizes(step * number, size, index, time_index) for number, size in enumerate(log_bytes)]


def grouped(segments: list[SegmentSizes], segment_bytes: int, index_bytes: int = 10**6, end: int = 0) -> list[int]:
    end = end or segments[-1].base_offset + 10
    return [len(group) for group in group_segments(segments, segment_bytes, index_bytes, end)]


def test_segment_grouping() -> None:
    assert grouped(sizes(*[5] * 9), 10**9) == [9]
    assert grouped(sizes(*[5] * 9), 1) == [1] * 9
    assert grouped(sizes(*[5] * 9), 10) == [2, 2, 2, 2, 1]
    assert grouped(sizes(*[5] * 9), 9) == [1] * 9
    assert grouped(sizes(*[5] * 4, index=50, time_index=1), 10**9, 100) == [2, 2]
    assert grouped(sizes(*[5] * 4, index=1, time_index=50), 10**9, 99) == [1] * 4
    assert group_segments([], 10, 10, 0) == []


def test_segment_grouping_with_sparse_offsets() -> None:
    limit = 2**31 - 1
    two = [SegmentSizes(0, 5, 8, 12), SegmentSizes(10, 5, 8, 12)]
    assert grouped(two, 10**9, end=limit + 1) == [2]
    assert grouped(two, 10**9, end=limit + 2) == [1, 1]
    assert grouped([*two, SegmentSizes(limit + 1, 5, 8, 12)], 10**9) == [2, 1]
    assert grouped([*two, SegmentSizes(limit + 2, 5, 8, 12)], 10**9, end=limit + 3) == [1, 2]


def test_segment_grouping_following_load_of_zero_index() -> None:
    """Empty segments join any group."""
    assert grouped([SegmentSizes(0, 5, 8, 12), SegmentSizes(10, 0, 0, 0)], 10**9, end=2**40) == [2]
