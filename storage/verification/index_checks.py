"""Offset and time index of a segment, held against its batches as they come by.

    .index       positions and offsets grow; a batch starts at the position, none before it ends at the offset or
                 behind it, and some batch ends there
    .timeindex   timestamps grow and offsets do not fall; a batch ends at the offset whose max timestamp is the entry's,
                 and nothing before it is younger

kafka-dump-log asks more of an offset index: that the batch at the position itself ends at the offset. A follower of
Apache Kafka that appends several batches at once indexes the last offset of all with the position of the first, which
lookups allow for, and so does this check.

Both checks go through entries and batches once, side by side; an entry out of order is reported and passed over.
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
    """The entries of an index in order, one at a time. Zero fill at the end is none of them."""

    def __init__(self, index: _Index[EntryT], entry_size: int, report: Report, *, is_open: bool) -> None:
        self._index = index
        self._entry_size = entry_size
        self._report = report
        self.slot = 0
        with open(index.path, "rb") as file:
            # All at once: a killed Apache Kafka leaves 10 MB of them in each index.
            used_bytes = len(file.read(index.entries * entry_size).rstrip(b"\0"))
        self.count = -(-used_bytes // entry_size)
        if is_open:
            return
        # Alone, an entry of zeros may be meant: a record of the year 1970.
        self.count = max(self.count, min(index.entries, 1))
        if self.count < index.entries:
            self.report(self.count, f"{index.entries - self.count} entries of zeros: the file was not cut to its end")

    @property
    def current(self) -> EntryT | None:
        return self._index.entry(self.slot) if self.slot < self.count else None

    def report(self, slot: int, message: str) -> None:
        self._report(Finding(self._index.path, slot * self._entry_size, message))


class OffsetIndexCheck:
    """Call `see` for each batch in order, or `pass_over`, then `finish`."""

    def __init__(self, index: OffsetIndex, report: Report, *, is_open: bool) -> None:
        self._is_open = is_open
        # The same entries twice: they reach the batch they point at before the one that ends at their offset.
        size = offset_index.ENTRY_SIZE
        self._by_position: _Entries[OffsetPosition] = _Entries(index, size, report, is_open=is_open)
        self._by_offset: _Entries[OffsetPosition] = _Entries(index, size, _report_nothing, is_open=is_open)
        self._report = self._by_position.report
        self._previous = OffsetPosition(index.base_offset - 1, -1)
        self._out_of_order: set[int] = set()
        self._last_offset = index.base_offset - 1
        self._has_gap = False

    def pass_over(self, position: int) -> None:
        """A damaged batch: it begins there, and its offsets are not to be trusted."""
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
                    f"the batch at position {position} begins behind offset {self._last_offset}, entry offset "
                    f"{entry.offset}",
                )
            self._previous = entry
            entries.slot += 1

    def finish(self) -> None:
        """The log is at its end; entries that are left point behind it."""
        if self._is_open:
            return
        self._see_end(2**63)
        while (entry := self._next_in_order()) is not None:
            self._report(
                self._by_position.slot,
                f"offset {entry.offset} at position {entry.position} lies behind the end of the log",
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
        """A damaged batch: its offsets and timestamps are not to be trusted."""
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
        """The log is at its end; entries that are left name offsets behind it."""
        if self._is_open or self._has_gap:
            return
        while (entry := self._next_in_order()) is not None:
            self._entries.report(
                self._entries.slot,
                f"timestamp {entry.timestamp} at offset {entry.offset} lies behind the end of the log",
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
    """What two cursors over the same entries find is reported by one of them."""
