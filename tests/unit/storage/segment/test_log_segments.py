"""The sorted map of segments, against a dictionary."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

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
