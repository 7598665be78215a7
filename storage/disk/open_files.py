"""The descriptors the logs hold: a bounded set with the least recently used leaving first.

Ten thousand partitions have tens of thousands of files, most of them untouched for hours. A closed segment therefore
holds no descriptor until it is read, and an index none until it is searched or written (a mapping holds one as well).
Whoever opens something registers here as an `Evictable`; above the limit, or when the kernel answers EMFILE, the oldest
ones that nobody uses are closed. A file being drained into a socket is in use and declines.

EMFILE also lowers the limit: whoever shares the process's descriptors needs some too, and a worker thread cannot evict.
Before it comes to that, whoever gets a number of the reserve (`descriptors.py`) has others closed; what cannot be had
without the reserve all the same is refused to clients (`opening_for_client`), and given to the broker.

Kafka keeps all of them open and leaves the limit to ulimit.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.storage.disk.descriptors import DescriptorLimits, is_out_of_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN_FILES_MAX: Final = 8192
"""The default limit; lower when RLIMIT_NOFILE is small."""

HEADROOM: Final = 32
"""Left for descriptors that are held for moments only: fsyncs, small files, directories."""

NO_LIMITS: Final = DescriptorLimits()

_LIMIT_MIN: Final = 16
_EVICT_AT_ONCE: Final = 64
T = TypeVar("T")


class Evictable(Protocol):
    """Something that holds a descriptor it can get back later."""

    def evict(self) -> bool:
        """Close the descriptor and answer True, or answer False because it is in use."""


class OpenFiles:
    """Least-recently-used bookkeeping over everything that holds a descriptor."""

    __slots__ = ("_entries", "_first_reserved", "limit")

    def __init__(self, limit: int = OPEN_FILES_MAX, descriptors: DescriptorLimits = NO_LIMITS) -> None:
        self.limit = min(limit, descriptors.open_files)
        self._first_reserved = descriptors.log_files
        self._entries: OrderedDict[Evictable, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def touch(self, entry: Evictable) -> None:
        """Note a use of an open entry; one that has been closed by its owner is none of ours."""
        if entry in self._entries:
            self._entries.move_to_end(entry)

    def retry(self, open_it: Callable[[], T]) -> T:
        """Open something that its holder closes itself, making room and trying once more if the kernel refuses."""
        try:
            opened = open_it()
        except OSError as error:
            if not is_out_of_descriptors(error) or not self._learn_limit():
                raise
            return open_it()
        if isinstance(opened, int) and opened >= self._first_reserved:
            self._evict(min(_EVICT_AT_ONCE, 1 + len(self._entries) // 2))
        return opened

    def opening(self, entry: Evictable, open_it: Callable[[], T]) -> T:
        """Open something and register its holder, making room first and once more if the kernel refuses."""
        if len(self._entries) >= self.limit:
            self._evict(_EVICT_AT_ONCE)
        opened = self.retry(open_it)
        self._entries[entry] = None
        return opened

    def opening_for_client(self, entry: Evictable, open_it: Callable[[], int]) -> int:
        """As `opening`, for what a client may keep in use. Raises: OSError EMFILE where only the reserve is left."""
        fd = self.opening(entry, open_it)
        if fd < self._first_reserved:
            return fd
        try:  # others may have been closed in its favour
            lower = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)
        finally:
            os.close(fd)
            self.closed(entry)
        if lower >= self._first_reserved:
            os.close(lower)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._entries[entry] = None
        return lower

    def closed(self, entry: Evictable) -> None:
        """Note that the entry holds nothing any more."""
        self._entries.pop(entry, None)

    def _learn_limit(self) -> int:
        """The kernel has refused: from now on hold fewer, so that the work of others does not meet the wall."""
        self.limit = max(_LIMIT_MIN, min(self.limit, len(self._entries) - HEADROOM))
        return self._evict(max(_EVICT_AT_ONCE, len(self._entries) - self.limit))

    def _evict(self, count: int) -> int:
        """Close up to `count` of the longest unused entries; those in use move to the young end."""
        evicted = 0
        for entry in list(islice(self._entries, 2 * count)):
            if evicted == count:
                break
            if entry.evict():
                self._entries.pop(entry, None)
                evicted += 1
            else:
                self._entries.move_to_end(entry)
        return evicted
