"""The segments of a log, ordered by base offset.

A search by time remembers the largest timestamp up to each segment that it has looked at. These maxima ascend, so that
the next search is a bisection. Appends change only the active segment, which is not among them.

Invariants: the keys are exactly the base offsets, ascending; the last segment is the active one. A segment among the
remembered ones has not changed since: truncation cuts the last segment only, and all others are replaced, not changed.

Kafka: LogSegments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.storage.segment.log_segment import LogSegment


class LogSegments:
    """A sorted map from base offset to segment; every read searches it."""

    __slots__ = ("_bases", "_maxima", "_segments", "active")
    __deletable__ = ("active",)  # mypyc refuses `del` of an attribute that is not named here

    active: LogSegment
    """The last segment: appends go to it. Unset without segments."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[LogSegment] = []
        self._maxima: list[int] = []
        """At each index the largest timestamp of the segments up to there. For the first segments only: those that a
        search has looked at, none of them active, up to the first one without timestamps."""

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[LogSegment]:
        """The segments from oldest to newest: a copy made when the iteration begins."""
        return iter(list(self._segments))

    def __contains__(self, base_offset: int) -> bool:
        return self.get(base_offset) is not None

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    @property
    def is_empty(self) -> bool:
        return not self._bases

    @property
    def first(self) -> LogSegment:
        return self._segments[0]

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def add(self, segment: LogSegment) -> LogSegment | None:
        """Add a segment. Returns the replaced one with the same base offset, if any."""
        index = bisect_left(self._bases, segment.base_offset)
        self._forget_maxima(index)
        if index < len(self._bases) and self._bases[index] == segment.base_offset:
            replaced, self._segments[index] = self._segments[index], segment
            self.active = self._segments[-1]
            return replaced
        self._bases.insert(index, segment.base_offset)
        self._segments.insert(index, segment)
        self.active = self._segments[-1]
        return None

    def remove(self, base_offset: int) -> None:
        index = bisect_left(self._bases, base_offset)
        if index < len(self._bases) and self._bases[index] == base_offset:
            del self._bases[index], self._segments[index]
            self._forget_maxima(index)
            if self._segments:
                self.active = self._segments[-1]
            else:
                del self.active

    def clear(self) -> None:
        if self._segments:
            del self.active
        self._bases.clear()
        self._segments.clear()
        self._maxima.clear()

    def _forget_maxima(self, index: int) -> None:
        """Forget the maxima from the segment at `index` on, and that of the last segment: it may be active now."""
        del self._maxima[max(0, min(index, len(self._segments) - 1)) :]

    def get(self, base_offset: int) -> LogSegment | None:
        index = bisect_left(self._bases, base_offset)
        return self._segments[index] if index < len(self._bases) and self._bases[index] == base_offset else None

    def floor(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset of at most `offset`."""
        index = bisect_right(self._bases, offset)
        return self._segments[index - 1] if index else None

    def lower(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset below `offset`."""
        index = bisect_left(self._bases, offset)
        return self._segments[index - 1] if index else None

    def higher(self, offset: int) -> LogSegment | None:
        """The segment with the smallest base offset above `offset`."""
        index = bisect_right(self._bases, offset)
        return self._segments[index] if index < len(self._bases) else None

    def range(self, start: int, end: int) -> list[LogSegment]:
        """The segments that may hold offsets in [start, end): from the floor of `start` on."""
        first = max(0, bisect_right(self._bases, start) - 1)
        return self._segments[first : bisect_left(self._bases, end)]

    def from_offset(self, offset: int) -> list[LogSegment]:
        """The segments whose base offset is at least `offset`."""
        return self._segments[bisect_left(self._bases, offset) :]

    def from_time(self, timestamp: int) -> Iterator[LogSegment]:
        """The segments with a `largest_timestamp` of at least `timestamp` (ms), ascending by offset.

        The segments must not change before the iteration ends.
        """
        maxima = self._maxima
        for index in range(bisect_left(maxima, timestamp), len(self._segments)):
            segment = self._segments[index]
            if index == len(maxima) and segment is not self.active and segment.largest.timestamp >= 0:
                largest = segment.largest.timestamp
                maxima.append(max(largest, maxima[-1]) if maxima else largest)
            if segment.largest_timestamp >= timestamp:
                yield segment

    def first_from_time(self, timestamp: int) -> LogSegment | None:
        """The first one of `from_time`."""
        index = bisect_left(self._maxima, timestamp)
        if index < len(self._maxima):
            return self._segments[index]  # the maximum up to here is its own: the one before is lower
        return next(self.from_time(timestamp), None)

    def not_searched(self, timestamp: int | None = None) -> list[LogSegment]:
        """The segments that no search by time has looked at yet; the active one, and those without timestamps.

        With a timestamp: none if `first_from_time` finds a segment before them.
        """
        maxima = self._maxima
        is_found = timestamp is not None and maxima and maxima[-1] >= timestamp
        return [] if is_found else self._segments[len(maxima) :]
