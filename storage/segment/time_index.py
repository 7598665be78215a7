"""The `.timeindex` file of a segment: maps timestamps to offsets.

An entry (timestamp, offset - base offset) means: no record up to that offset has a larger timestamp, and the batch that
ends at the offset contains a record with exactly that timestamp. Timestamps strictly increase, offsets do not decrease.
One slot stays free, so that the final entry at roll or close always fits.

Kafka: TimeIndex.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from odradek.protocol.new_tuple import new_tuple
from odradek.storage.offsets import TimestampOffset
from odradek.storage.segment.mapped_index import InvalidOffsetError, MappedIndex

if TYPE_CHECKING:
    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.open_files import OpenFiles

ENTRY: Final = Struct(">qi")
ENTRY_SIZE: Final = ENTRY.size
_KEY: Final = Struct(">q")


class TimeIndex(MappedIndex):
    """Sparse map from timestamp to offset."""

    __slots__ = ("_last",)

    def __init__(self, path: str, base_offset: int, max_bytes: int, fs: FileSystem, open_files: OpenFiles) -> None:
        super().__init__(path, base_offset, max_bytes, entry=ENTRY, key=_KEY, fs=fs, open_files=open_files)
        self._last: TimestampOffset | None = None

    @property
    def room(self) -> int:
        return self.max_entries - 1 - self.entries

    @property
    def knows_its_end(self) -> bool:
        """Whether the last entry is in memory, so that it needs no read."""
        return self._last is not None

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base offset) without entries. Raises OSError."""
        if self._last is None:
            timestamp, relative = self._last_fields() if self.entries else (-1, 0)
            self._last = TimestampOffset(timestamp, self.base_offset + relative)
        return self._last

    def entry(self, slot: int) -> TimestampOffset:
        if not 0 <= slot < self.entries:
            raise IndexError(f"slot {slot} of {self.entries} in {self.path}")
        timestamp, relative = ENTRY.unpack_from(self._mapping(), slot * ENTRY_SIZE)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if its timestamp is larger than the last one. The caller checks `room` where needed."""
        last = self._last or self.last_entry
        if timestamp <= last.timestamp:
            return
        if offset < last.offset and self.entries:
            raise InvalidOffsetError(
                f"Attempt to append an offset ({offset}) to slot {self.entries} no larger than the last offset "
                f"appended ({last.offset}) to {self.path}"
            )
        self._append_entry(timestamp, offset - self.base_offset)
        self._last = new_tuple(TimestampOffset, (timestamp, offset))

    def lookup(self, target: int) -> TimestampOffset:
        """The last entry with a timestamp of at most `target`, else (-1, base offset)."""
        slot = self._floor_slot(target)
        if slot < 0:
            return TimestampOffset(-1, self.base_offset)
        timestamp, relative = ENTRY.unpack_from(self._map or self._mapping(), slot * ENTRY_SIZE)
        return new_tuple(TimestampOffset, (timestamp, self.base_offset + relative))

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` and above."""
        low, high = 0, self.entries
        if high:
            view = self._mapping()
            relative = offset - self.base_offset
            while low < high:
                middle = (low + high) >> 1
                if ENTRY.unpack_from(view, middle * ENTRY_SIZE)[1] < relative:
                    low = middle + 1
                else:
                    high = middle
        self._truncate_to_entries(low)
        self._last = None

    def rewrite(self) -> None:
        super().rewrite()
        self._last = None
