"""The `.index` file of a segment: maps offsets to positions, with one entry per `index.interval.bytes`.

An entry is (offset - base offset, position), both 32 bits: the *last* offset of a batch and the position where that
batch *starts*. Offsets strictly increase. A lookup returns the last entry at or below the target; the caller scans the
batches from there.

Kafka: OffsetIndex.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.new_tuple import new_tuple
from odradek.storage.segment.mapped_index import InvalidOffsetError, MappedIndex

if TYPE_CHECKING:
    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.open_files import OpenFiles

ENTRY: Final = Struct(">ii")
ENTRY_SIZE: Final = ENTRY.size
_KEY: Final = Struct(">i")


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(MappedIndex):
    """Sparse map from offset to file position."""

    __slots__ = ("_last_offset",)

    def __init__(self, path: str, base_offset: int, max_bytes: int, fs: FileSystem, open_files: OpenFiles) -> None:
        super().__init__(path, base_offset, max_bytes, entry=ENTRY, key=_KEY, fs=fs, open_files=open_files)
        self._last_offset = -1

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset without entries. Raises OSError."""
        if self._last_offset < 0:
            self._last_offset = self.base_offset + (self._last_fields()[0] if self.entries else 0)
        return self._last_offset

    def entry(self, slot: int) -> OffsetPosition:
        if not 0 <= slot < self.entries:
            raise IndexError(f"slot {slot} of {self.entries} in {self.path}")
        relative, position = ENTRY.unpack_from(self._mapping(), slot * ENTRY_SIZE)
        return OffsetPosition(self.base_offset + relative, position)

    def append(self, offset: int, position: int) -> None:
        last_offset = self._last_offset if self._last_offset >= 0 else self.last_offset
        if offset <= last_offset and self.entries:
            raise InvalidOffsetError(
                f"Attempt to append an offset ({offset}) to position {self.entries} no larger than the last offset "
                f"appended ({self.last_offset}) to {self.path}."
            )
        self._append_entry(offset - self.base_offset, position)
        self._last_offset = offset

    def lookup(self, target: int) -> OffsetPosition:
        """The last entry with an offset of at most `target`, else (base offset, 0)."""
        slot = self._floor_slot(target - self.base_offset)
        if slot < 0:
            return OffsetPosition(self.base_offset, 0)
        relative, position = ENTRY.unpack_from(self._map or self._mapping(), slot * ENTRY_SIZE)
        return new_tuple(OffsetPosition, (self.base_offset + relative, position))

    def offset_at_or_after_position(self, position: int) -> int | None:
        """The offset of the first entry with a position of at least `position`.

        Kafka: OffsetIndex.fetchUpperBoundOffset.
        """
        low, high = 0, self.entries
        if not high:
            return None
        view = self._mapping()
        while low < high:
            middle = (low + high) >> 1
            if ENTRY.unpack_from(view, middle * ENTRY_SIZE)[1] < position:
                low = middle + 1
            else:
                high = middle
        return self.entry(low).offset if low < self.entries else None

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` and above."""
        slot = self._floor_slot(offset - self.base_offset - 1)
        self._truncate_to_entries(slot + 1)
        self._last_offset = -1

    def rewrite(self) -> None:
        super().rewrite()
        self._last_offset = -1
