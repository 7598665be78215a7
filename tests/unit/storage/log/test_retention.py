"""The segments that retention selects: by start offset, size and time."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.log import retention


@dataclass
class Segment:
    base_offset: int
    size: int
    largest_timestamp: int


def segments(*rows: tuple[int, int, int]) -> list[Segment]:
    return [Segment(*row) for row in rows]


THREE = segments((0, 100, 1000), (10, 100, 2000), (20, 100, 3000))


def bases(found: list[Segment]) -> list[int]:
    return [segment.base_offset for segment in found]


def by_start(log_start: int, high_watermark: int = 30) -> list[int]:
    return bases(
        retention.start_offset_breached(
            THREE, high_watermark=high_watermark, log_end_offset=30, log_start_offset=log_start
        )
    )


def by_size(limit: int, high_watermark: int = 30, of: list[Segment] = THREE) -> list[int]:
    return bases(retention.size_breached(of, high_watermark=high_watermark, log_end_offset=30, retention_bytes=limit))


def by_time(limit: int, now: int, high_watermark: int = 30, of: list[Segment] = THREE) -> list[int]:
    return bases(
        retention.time_breached(of, high_watermark=high_watermark, log_end_offset=30, retention_ms=limit, now_ms=now)
    )


def test_start_offset_needs_the_whole_segment_below() -> None:
    assert by_start(9) == []
    assert by_start(10) == [0]
    assert by_start(29) == [0, 10]
    assert by_start(30) == [0, 10], "the last segment has no successor"


def test_size_keeps_at_least_the_limit() -> None:
    assert by_size(-1) == []
    assert by_size(301) == []
    assert by_size(201) == []
    assert by_size(200) == [0]
    assert by_size(0) == [0, 10, 20]


def test_time_has_two_sides() -> None:
    assert by_time(-1, 10**9) == []
    assert by_time(500, 1500) == []
    assert by_time(500, 1501) == [0]
    assert by_time(0, 10**9) == [0, 10, 20]


def test_walk_stops_at_the_first_segment_that_stays() -> None:
    late_first = segments((0, 10, 9000), (10, 10, 1000))
    assert by_time(500, 5000, of=late_first) == []


def test_high_watermark_protects() -> None:
    assert by_time(0, 10**9, high_watermark=9) == []
    assert by_time(0, 10**9, high_watermark=10) == [0]
    assert by_time(0, 10**9, high_watermark=29) == [0, 10]


def test_empty_last_segment_stays() -> None:
    assert by_time(0, 10**9, of=segments((0, 10, 5), (30, 0, 5))) == [0]
    assert by_size(0, of=segments((30, 0, 5))) == []


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=6)


@given(rows, st.integers(-1, 30), st.integers(0, 60))
def test_deletable_segments_are_a_prefix_below_the_high_watermark(
    shape: list[tuple[int, int]], limit: int, high_watermark: int
) -> None:
    of = [Segment(index * 10, size, timestamp) for index, (size, timestamp) in enumerate(shape)]
    end = len(of) * 10
    for found in (
        retention.size_breached(of, high_watermark=high_watermark, log_end_offset=end, retention_bytes=limit),
        retention.time_breached(of, high_watermark=high_watermark, log_end_offset=end, retention_ms=limit, now_ms=10),
    ):
        assert found == of[: len(found)]
        assert len(found) * 10 <= high_watermark or not found
    kept = of[len(retention.size_breached(of, high_watermark=end, log_end_offset=end, retention_bytes=limit)) :]
    if limit >= 0 and sum(s.size for s in of) >= limit:
        assert sum(s.size for s in kept) >= limit
