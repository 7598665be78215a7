"""A sorted file of fixed-size entries, read and written through a memory map.

The file grows by 4 KiB pages with `posix_fallocate`, which raises OSError on a full disk: a write into a hole of a
sparse mapping would raise SIGBUS there, which kills the process. The map is closed before the file is truncated, and
created again when the file grows. It is opened on first use and may be evicted at any time; the entry count stays in
memory. A lookup searches the last 8 KiB first, because consumers read the tail, whose pages are in memory.

Invariants: entries are ordered by their key; the file is at least `entries * ENTRY_SIZE` long, zero-filled beyond;
close and roll truncate it to exactly that, because a reader derives the number of entries from the file length.

Kafka: AbstractIndex, LazyIndex.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.file_system import may_exist

if TYPE_CHECKING:
    import mmap
    from struct import Struct

    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.open_files import OpenFiles

PAGE_BYTES: Final = 4096
WARM_SECTION_BYTES: Final = 8192


class InvalidOffsetError(Exception):
    """An entry would break the order of an index: a bug in the caller."""


class MappedIndex:
    """The common part of offset and time index: the file, its map, and the search."""

    __slots__ = (
        "_allocated",
        "_dirty",
        "_entries",
        "_entry",
        "_fs",
        "_key",
        "_map",
        "_open_files",
        "_rewritten_bytes",
        "base_offset",
        "max_entries",
        "path",
    )

    def __init__(
        self,
        path: str,
        base_offset: int,
        max_bytes: int,
        *,
        entry: Struct,
        key: Struct,
        fs: FileSystem,
        open_files: OpenFiles,
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max_bytes // entry.size
        self._entry = entry
        self._key = key
        self._fs = fs
        self._open_files = open_files
        self._map: mmap.mmap | None = None
        self._entries = -1  # not loaded yet
        self._allocated = 0
        self._dirty = False
        self._rewritten_bytes = 0

    @property
    def entries(self) -> int:
        if self._entries < 0:
            self._load_size()
        return self._entries

    @property
    def size_in_bytes(self) -> int:
        """The size of the entries."""
        return self.entries * self._entry.size

    @property
    def room(self) -> int:
        """How many more entries the index may get."""
        return self.max_entries - self.entries

    @property
    def is_dirty(self) -> bool:
        """Whether anything changed since the last `open_for_sync`."""
        return self._dirty

    @property
    def is_open(self) -> bool:
        return self._map is not None

    def create(self) -> None:
        """Create the file, empty, if it is missing. Raises OSError."""
        os.close(self._open(create=True))

    def resize(self, max_bytes: int) -> None:
        """Change the maximum size; existing entries stay."""
        self.max_entries = max(max_bytes // self._entry.size, self.entries)

    def rewrite(self) -> None:
        """Remove all entries. Adding the same entries again does not change the file: freeing a block may take
        milliseconds, and a start after a kill rebuilds the indexes of every log. Call `trim` after the last entry.
        """
        self._load_size()
        self._rewritten_bytes = self._allocated
        self._entries = 0
        self._dirty |= self._allocated > 0  # a broker that was killed has synced nothing

    def make_room(self, entries: int = 1) -> None:
        """Allocate and map the pages of the next entries, so that adding them cannot fail. Raises OSError."""
        used = self._entries
        needed = ((used if used >= 0 else self.entries) + entries) * self._entry.size
        if needed > self._allocated:
            self._grow(needed)
        if self._map is None:
            self._mapping()
        else:
            self._open_files.mark_used(self)

    def trim(self) -> None:
        """Truncate the file to its entries, so that other readers find no zeros.

        Kafka: AbstractIndex.trimToValidSize.
        """
        if self._entries < 0:
            return  # never used, so that nothing was allocated
        self._cut(self._entries)

    def close(self) -> None:
        self.trim()
        self._unmap()

    def evict(self) -> bool:
        """Close the map; the next use maps the file again."""
        map_, self._map = self._map, None
        if map_ is not None:
            map_.close()
        return True

    def discard(self) -> None:
        """Close the map without changing the file, which is about to be removed. Kafka: AbstractIndex.closeHandler."""
        self._unmap()

    def rename_to(self, path: str) -> None:
        if may_exist(self.path):
            self._fs.rename(self.path, path)
        self.path = path

    def open_for_sync(self, *, unchanged_too: bool = False) -> int | None:
        """A descriptor for fsync that the caller owns; None if nothing changed. The fsync covers writes to the map.

        Raises OSError: the index stays dirty.
        """
        if not self._dirty and not unchanged_too:
            return None
        fd: int | None
        try:
            fd = self._open()
        except FileNotFoundError:
            fd = None
        self._dirty = False
        return fd

    # -- for the subclasses ------------------------------------------------------------------------

    def _mapping(self) -> mmap.mmap:
        """The map. Call only when the file has allocated pages."""
        map_ = self._map
        if map_ is None:
            map_ = self._map = self._open_files.opening(self, self._open_map)
        else:
            self._open_files.mark_used(self)
        return map_

    def _last_fields(self) -> tuple[int, ...]:
        """The fields of the last entry. Call only when there are entries. Raises OSError.

        Of an index that is not mapped, the end that a lookup searches first is read with a system call: an error of the
        disk is an OSError there, and a SIGBUS in the map, which kills the process.
        """
        size = self._entry.size
        end = self.entries * size
        if self._map is not None:
            return self._entry.unpack_from(self._map, end - size)
        start = max(0, end - size - WARM_SECTION_BYTES)
        fd = self._open()
        try:
            data = os.pread(fd, end - start, start)
        finally:
            os.close(fd)
        if len(data) < end - start:
            raise OSError(errno.EIO, "the file is shorter than its entries", self.path)
        return self._entry.unpack_from(data, len(data) - size)

    def _append_entry(self, *fields: int) -> None:
        slot = self._entries
        if slot < 0:
            slot = self.entries
        at = slot * self._entry.size
        if at < self._rewritten_bytes:
            if self._holds(at, fields):
                self._entries = slot + 1
                return
            self._cut(slot)
        if at + self._entry.size > self._allocated:
            self._grow(at + self._entry.size)
        map_ = self._map  # `make_room` has marked it as used
        self._entry.pack_into(self._mapping() if map_ is None else map_, at, *fields)
        self._entries = slot + 1
        self._dirty = True

    def _holds(self, at: int, fields: tuple[int, ...]) -> bool:
        """Whether the file has this entry there already."""
        end = at + self._entry.size
        return end <= self._allocated and self._mapping()[at:end] == self._entry.pack(*fields)

    def _floor_slot(self, target: int) -> int:
        """The last slot whose key is at most `target`, or -1. Kafka: AbstractIndex.largestLowerBoundSlotFor."""
        entries = self._entries if self._entries >= 0 else self.entries
        if not entries:
            return -1
        size = self._entry.size
        view = self._mapping()
        key_at = self._key.unpack_from
        first_hot = max(0, entries - 1 - WARM_SECTION_BYTES // size)
        if key_at(view, first_hot * size)[0] < target:
            low, high = first_hot, entries - 1
        else:
            low, high = -1, first_hot
        while low < high:
            middle = (low + high + 1) >> 1
            if key_at(view, middle * size)[0] <= target:
                low = middle
            else:
                high = middle - 1
        return low

    def _truncate_to_entries(self, entries: int) -> None:
        """Remove the entries after the first `entries`. They become zeros until the next `trim`: a reader of a running
        broker's file treats zeros after the first entry as its end. Without entries, the file is as a new one of
        Apache's: kafka-dump-log takes the first zeros for an entry. The file is not cut, because freeing blocks may
        take milliseconds.
        """
        dropped = (self.entries - entries) * self._entry.size
        if dropped <= 0:
            return
        kept = entries * self._entry.size
        self._mapping()[kept : kept + dropped] = bytes(dropped)
        self._entries = entries
        self._dirty = True

    # -- the file ----------------------------------------------------------------------------------

    def _load_size(self) -> None:
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            size = 0
        self._allocated = size
        self._entries = size // self._entry.size

    def _open_map(self) -> mmap.mmap:
        fd = self._open()
        try:
            return self._fs.map(fd, self._allocated)
        finally:
            os.close(fd)  # the map has its own descriptor

    def _open(self, *, create: bool = False) -> int:
        return self._open_files.retry(lambda: self._fs.open(self.path, create=create))

    def _grow(self, needed: int) -> None:
        target = -(-needed // PAGE_BYTES) * PAGE_BYTES
        self._unmap()
        fd = self._open(create=True)
        try:
            self._fs.allocate(fd, self._allocated, target - self._allocated)
        except OSError:
            # A part may have been allocated, and a reader would treat the zeros as entries.
            self._fs.truncate(fd, self._allocated)
            raise
        finally:
            os.close(fd)
        self._allocated = target

    def _cut(self, entries: int) -> None:
        size = entries * self._entry.size
        if self._entries < 0:
            self._load_size()
        self._rewritten_bytes = 0
        if size != self._allocated:
            self._unmap()
            fd = self._open(create=True)
            try:
                self._fs.truncate(fd, size)
            finally:
                os.close(fd)
            self._allocated = size
            self._dirty = True
        self._entries = entries

    def _unmap(self) -> None:
        self._open_files.closed(self)
        self.evict()
