"""The sorted map of segments, against a dictionary."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.storage.offsets import TimestampOffset
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.log_segments import LogSegments


def segments_of(bases: set[int]) -> LogSegments:
    segments = LogSegments()
    for base in bases:
        segments.add(SimpleNamespace(base_offset=base, size=base))  # type: ignore[arg-type]
    return segments


def base(segment: object) -> int | None:
    return None if segment is None else segment.base_offset  # type: ignore[attr-defined, no-any-return]


@given(st.sets(st.integers(0, 40)), st.integers(-2, 42), st.integers(-2, 45))
def test_lookups_agree_with_a_scan(bases: set[int], offset: int, end: int) -> None:
    segments = segments_of(bases)
    assert segments.base_offsets == sorted(bases)
    assert base(segments.floor(offset)) == max((b for b in bases if b <= offset), default=None)
    assert base(segments.lower(offset)) == max((b for b in bases if b < offset), default=None)
    assert base(segments.higher(offset)) == min((b for b in bases if b > offset), default=None)
    assert base(segments.get(offset)) == (offset if offset in bases else None)
    assert (offset in segments) == (offset in bases)
    assert [base(s) for s in segments.from_offset(offset)] == sorted(b for b in bases if b >= offset)
    start = max((b for b in bases if b <= offset), default=min(bases, default=0))
    assert [base(s) for s in segments.range(offset, end)] == sorted(b for b in bases if start <= b < end)
    assert segments.size_in_bytes == sum(bases)


@given(st.sets(st.integers(0, 40), min_size=1), st.data())
def test_removal_and_replacement(bases: set[int], data: st.DataObject) -> None:
    segments = segments_of(bases)
    gone = data.draw(st.sampled_from(sorted(bases)))
    segments.remove(gone)
    segments.remove(gone)
    assert segments.base_offsets == sorted(bases - {gone})
    assert segments.is_empty == (len(bases) == 1)
    if not segments.is_empty:
        new = SimpleNamespace(base_offset=segments.active.base_offset, size=0)
        old = segments.active
        assert segments.add(new) is old  # type: ignore[arg-type]
        assert segments.active is new
        assert base(segments.first) == min(bases - {gone})


def test_a_walk_is_not_disturbed_by_changes() -> None:
    segments = segments_of({1, 2, 3})
    for segment in segments:
        segments.remove(segment.base_offset)
    assert len(segments) == 0


@dataclass
class TimedSegment:
    """A segment as a search by time sees it."""

    base_offset: int
    timestamp: int
    """-1: none of its records has one, and the time of its file counts."""
    modified_ms: int
    looked_at: int = field(default=0, compare=False)

    @property
    def largest(self) -> TimestampOffset:
        self.looked_at += 1
        return TimestampOffset(self.timestamp, self.base_offset)

    @property
    def largest_timestamp(self) -> int:
        timestamp = self.largest.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms


times = st.integers(0, 20)
maybe_times = st.integers(-1, 20)


class SearchesByTime(RuleBasedStateMachine):
    """Searches between the changes of a log, compared with a look at every segment."""

    def __init__(self) -> None:
        super().__init__()
        self.segments = LogSegments()
        self.bases = count()
        self.is_searched_often = False
        self.roll(0, 0)

    def all(self) -> list[TimedSegment]:
        return cast("list[TimedSegment]", list(self.segments))

    def add(self, segment: TimedSegment) -> None:
        self.segments.add(cast("LogSegment", segment))

    @rule(timestamp=maybe_times, modified_ms=times)
    def roll(self, timestamp: int, modified_ms: int) -> None:
        self.add(TimedSegment(10 * next(self.bases), timestamp, modified_ms))

    @rule(timestamp=times)
    def append(self, timestamp: int) -> None:
        active = self.all()[-1]
        active.timestamp = max(active.timestamp, timestamp)

    @rule(removed=st.integers(0, 3), timestamp=maybe_times)
    def truncate(self, removed: int, timestamp: int) -> None:
        for segment in self.all()[1:][::-1][:removed]:
            self.segments.remove(segment.base_offset)
        active = self.all()[-1]
        active.timestamp = min(active.timestamp, timestamp)

    @rule(removed=st.integers(0, 3))
    def delete_the_oldest(self, removed: int) -> None:
        for segment in self.all()[:-1][:removed]:
            self.segments.remove(segment.base_offset)

    @rule(data=st.data(), timestamp=maybe_times)
    def insert(self, data: st.DataObject, timestamp: int) -> None:
        base = data.draw(st.sampled_from(self.all())).base_offset - 5
        if base not in self.segments:
            self.add(TimedSegment(base, timestamp, 0))

    @precondition(lambda self: len(self.segments) > 2)
    @rule(data=st.data(), timestamp=maybe_times)
    def compact(self, data: st.DataObject, timestamp: int) -> None:
        """Some segments become one, perhaps without the record with the largest timestamp."""
        closed = self.all()[:-1]
        first = data.draw(st.integers(0, len(closed) - 1))
        last = data.draw(st.integers(first, len(closed) - 1))
        for segment in closed[first : last + 1]:
            self.segments.remove(segment.base_offset)
        self.add(TimedSegment(closed[first].base_offset, timestamp, 0))

    @rule(timestamp=maybe_times)
    def replace_the_active_one(self, timestamp: int) -> None:
        self.add(TimedSegment(self.all()[-1].base_offset, timestamp, 0))

    @rule(modified_ms=times, data=st.data())
    def touch_a_file(self, modified_ms: int, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.all())).modified_ms = modified_ms

    @initialize(often=st.booleans())
    def begin(self, often: bool) -> None:
        self.is_searched_often = often

    @invariant()
    def searches_agree(self) -> None:
        if self.is_searched_often:
            for timestamp in range(0, 24, 3):
                self.search(timestamp, 1)

    @rule(timestamp=st.integers(-1, 22), taken=st.integers(1, 5))
    def search(self, timestamp: int, taken: int) -> None:
        expected = [segment for segment in self.all() if segment.largest_timestamp >= timestamp]
        found = self.segments.from_time(timestamp)
        assert [segment for segment, _ in zip(found, range(taken), strict=False)] == expected[:taken]

    @rule(timestamp=st.integers(-1, 22))
    def search_the_first(self, timestamp: int) -> None:
        expected = next((segment for segment in self.all() if segment.largest_timestamp >= timestamp), None)
        unknown = self.segments.not_searched(timestamp)
        for segment in self.all():
            segment.looked_at = 0
        assert self.segments.first_from_time(timestamp) is expected
        assert all(segment in unknown for segment in self.all() if segment.looked_at), "it must not read another index"


TestSearchesByTime = SearchesByTime.TestCase


def test_a_search_looks_again_only_at_the_segments_that_may_have_changed() -> None:
    segments = LogSegments()
    timed = [TimedSegment(base, base * 10, 0) for base in range(100)]
    for segment in timed:
        segments.add(cast("LogSegment", segment))
    assert next(segments.from_time(500)).base_offset == 50
    assert not any(segment.looked_at for segment in timed[51:]), "what lies behind is not read"
    assert segments.not_searched() == timed[51:]
    for segment in timed:
        segment.looked_at = 0
    assert next(segments.from_time(300)).base_offset == 30
    assert {segment.base_offset for segment in timed if segment.looked_at} == {30}
    assert list(segments.from_time(5_000)) == []
    assert segments.not_searched() == timed[-1:]
