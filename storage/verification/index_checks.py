"""Checks the offset and time index of a segment against its batches.

    .index       positions and offsets increase; a batch starts at the position, no earlier batch ends at or after the
                 offset, and some batch ends there
    .timeindex   timestamps increase and offsets do not decrease; a batch with the entry's max timestamp ends at the
                 offset, and no earlier batch has a larger one

kafka-dump-log requires that the batch at the position of an offset index entry ends at its offset. A follower of Apache
Kafka that appends several batches at once indexes the last offset of all with the position of the first one. Lookups
work with such an entry, so that this check accepts it.

Both checks read entries and batches once, in parallel; an entry out of order is reported and skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from odradek.storage.offsets import TimestampOffset
from odradek.storage.segment import offset_index, time_index
from odradek.storage.segment.offset_index import OffsetPosition
from odradek.storage.verification.findings import Finding, Report

if TYPE_CHECKING:
    from odradek.storage.segment.offset_index import OffsetIndex
    from odradek.storage.segment.time_index import TimeIndex

EntryT_co = TypeVar("EntryT_co", covariant=True)
EntryT = TypeVar("EntryT")


class _Index(Protocol[EntryT_co]):
    path: str

    @property
    def entries(self) -> int: ...

    def entry(self, slot: int) -> EntryT_co: ...


class _Entries(Generic[EntryT]):
    """The entries of an index in order, one at a time, without the zero fill at the end."""

    def __init__(self, index: _Index[EntryT], entry_size: int, report: Report, *, is_open: bool) -> None:
        self._index = index
        self._entry_size = entry_size
        self._report = report
        self.slot = 0
        with open(index.path, "rb") as file:
            # The file is read in one piece: a killed Apache Kafka leaves 10 MB of zeros in each index.
            used_bytes = len(file.read(index.entries * entry_size).rstrip(b"\0"))
        self.count = -(-used_bytes // entry_size)
        if is_open:
            return
        # A single entry of zeros may be valid: a record of the year 1970.
        self.count = max(self.count, min(index.entries, 1))
        if self.count < index.entries:
            self.report(self.count, f"{index.entries - self.count} entries of zeros: the file was not trimmed")

    @property
    def current(self) -> EntryT | None:
        return self._index.entry(self.slot) if self.slot < self.count else None

    def report(self, slot: int, message: str) -> None:
        self._report(Finding(self._index.path, slot * self._entry_size, message))


class OffsetIndexCheck:
    """Call `see` for each batch in order, or `pass_over`, then `finish`."""

    def __init__(self, index: OffsetIndex, report: Report, *, is_open: bool) -> None:
        self._is_open = is_open
        # Two cursors over the same entries: the batch at an entry's position comes before the one that ends at its
        # offset.
        size = offset_index.ENTRY_SIZE
        self._by_position: _Entries[OffsetPosition] = _Entries(index, size, report, is_open=is_open)
        self._by_offset: _Entries[OffsetPosition] = _Entries(index, size, _report_nothing, is_open=is_open)
        self._report = self._by_position.report
        self._previous = OffsetPosition(index.base_offset - 1, -1)
        self._out_of_order: set[int] = set()
        self._last_offset = index.base_offset - 1
        self._has_gap = False

    def pass_over(self, position: int) -> None:
        """Call instead of `see` for a damaged batch, whose offsets may be wrong."""
        self._see_position(position)
        self._has_gap = True

    def see(self, position: int, last_offset: int) -> None:
        self._see_position(position)
        self._see_end(last_offset)
        self._last_offset = last_offset
        self._has_gap = False

    def _see_position(self, position: int) -> None:
        entries = self._by_position
        while (entry := self._next_in_order()) is not None and entry.position <= position:
            if entry.position < position:
                self._report(entries.slot, f"no batch starts at position {entry.position}, entry offset {entry.offset}")
            elif entry.offset <= self._last_offset:
                self._report(
                    entries.slot,
                    f"the batch at position {position} begins after offset {self._last_offset}, entry offset "
                    f"{entry.offset}",
                )
            self._previous = entry
            entries.slot += 1

    def finish(self) -> None:
        """Call after the last batch; reports the remaining entries, which point after the log end."""
        if self._is_open:
            return
        self._see_end(2**63)
        while (entry := self._next_in_order()) is not None:
            self._report(
                self._by_position.slot,
                f"offset {entry.offset} at position {entry.position} lies after the end of the log",
            )
            self._previous = entry
            self._by_position.slot += 1

    def _next_in_order(self) -> OffsetPosition | None:
        entries = self._by_position
        while (entry := entries.current) is not None:
            before = self._previous
            if entry.offset > before.offset and entry.position > before.position:
                return entry
            self._report(
                entries.slot,
                f"offset {entry.offset} at position {entry.position} does not follow offset {before.offset} at "
                f"position {before.position}",
            )
            self._out_of_order.add(entries.slot)
            entries.slot += 1
        return None

    def _see_end(self, last_offset: int) -> None:
        entries = self._by_offset
        while entries.slot < self._by_position.slot and (entry := entries.current) is not None:
            if entries.slot in self._out_of_order:
                self._out_of_order.discard(entries.slot)
            elif entry.offset > last_offset:
                return
            elif self._last_offset < entry.offset < last_offset and not self._has_gap:
                self._report(entries.slot, f"no batch ends at offset {entry.offset}")
            entries.slot += 1


class TimeIndexCheck:
    """Call `see` for each batch in order, or `pass_over`, then `finish`."""

    def __init__(self, index: TimeIndex, report: Report, *, is_open: bool) -> None:
        self._is_open = is_open
        size = time_index.ENTRY_SIZE
        self._entries: _Entries[TimestampOffset] = _Entries(index, size, report, is_open=is_open)
        self._previous = TimestampOffset(-1, index.base_offset)
        self._youngest = -1
        self._has_gap = False

    def pass_over(self, _position: int) -> None:
        """Call instead of `see` for a damaged batch, whose offsets and timestamps may be wrong."""
        self._has_gap = True

    def see(self, last_offset: int, max_timestamp: int) -> None:
        entries = self._entries
        while (entry := self._next_in_order()) is not None and entry.offset <= last_offset:
            if entry.offset < last_offset:
                if not self._has_gap:
                    entries.report(entries.slot, f"no batch ends at offset {entry.offset}")
            elif max_timestamp != entry.timestamp:
                entries.report(
                    entries.slot,
                    f"the batch that ends at offset {last_offset} has max timestamp {max_timestamp}, entry timestamp "
                    f"{entry.timestamp}",
                )
            elif self._youngest > entry.timestamp:
                entries.report(
                    entries.slot,
                    f"there is timestamp {self._youngest} before offset {last_offset}, entry timestamp "
                    f"{entry.timestamp}",
                )
            self._previous = entry
            entries.slot += 1
        self._youngest = max(self._youngest, max_timestamp)
        self._has_gap = False

    def finish(self) -> None:
        """Call after the last batch; reports the remaining entries, whose offsets lie after the log end."""
        if self._is_open or self._has_gap:
            return
        while (entry := self._next_in_order()) is not None:
            self._entries.report(
                self._entries.slot,
                f"timestamp {entry.timestamp} at offset {entry.offset} lies after the end of the log",
            )
            self._previous = entry
            self._entries.slot += 1

    def _next_in_order(self) -> TimestampOffset | None:
        entries = self._entries
        while (entry := entries.current) is not None:
            before = self._previous
            if entry.timestamp > before.timestamp and entry.offset >= before.offset:
                return entry
            entries.report(
                entries.slot,
                f"timestamp {entry.timestamp} at offset {entry.offset} does not follow timestamp {before.timestamp} at "
                f"offset {before.offset}",
            )
            entries.slot += 1
        return None


def _report_nothing(_: Finding) -> None:
    """The report of the second cursor over the same entries: the first one reports."""
