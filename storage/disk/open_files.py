"""The descriptors that logs hold: a bounded set; the least recently used are closed first.

Ten thousand partitions have tens of thousands of files, most of them unused for hours. A closed segment therefore has
no descriptor until it is read, and an index none until it is searched or written (a mapping holds one too). Each holder
of a descriptor registers here as an `Evictable`. Above the limit, or when the kernel returns EMFILE, the least recently
used ones are closed. A file that is being sent to a socket is in use and is skipped.

EMFILE also lowers the limit: the rest of the process needs descriptors too, and a worker thread cannot evict. A
descriptor from the reserve (`descriptors.py`) closes others before EMFILE occurs. If only the reserve is left, clients
get an error (`opening_for_client`), and the broker uses it.

Kafka keeps all files open and relies on ulimit.
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
"""Left free for short-lived descriptors: fsyncs, small files, directories."""

NO_LIMITS: Final = DescriptorLimits()

_LIMIT_MIN: Final = 16
_EVICT_AT_ONCE: Final = 64
T = TypeVar("T")


class Evictable(Protocol):
    """The holder of a descriptor that can be opened again later."""

    def evict(self) -> bool:
        """Close the descriptor; False if it is in use."""


class OpenFiles:
    """The holders of open descriptors, in the order of their last use."""

    __slots__ = ("_entries", "first_reserved", "limit", "mark_used")

    def __init__(self, limit: int = OPEN_FILES_MAX, descriptors: DescriptorLimits = NO_LIMITS) -> None:
        self.limit = min(limit, descriptors.open_files)
        self.first_reserved = descriptors.log_files
        """The lowest descriptor that no file of a client may have."""
        self._entries: OrderedDict[Evictable, None] = OrderedDict()
        self.mark_used: Callable[[Evictable], None] = self._entries.move_to_end
        """Mark a registered entry as just used. Most appends do so twice: hence without a call of Python.

        Raises: KeyError for an entry that is not registered."""

    def __len__(self) -> int:
        return len(self._entries)

    def retry(self, open_it: Callable[[], T]) -> T:
        """Open a descriptor that is not registered here. After EMFILE, evicts others and tries once more."""
        try:
            opened = open_it()
        except OSError as error:
            if not is_out_of_descriptors(error) or not self._lower_limit():
                raise
            return open_it()
        if isinstance(opened, int) and opened >= self.first_reserved:
            self._evict(min(_EVICT_AT_ONCE, 1 + len(self._entries) // 2))
        return opened

    def opening(self, entry: Evictable, open_it: Callable[[], T]) -> T:
        """Open a descriptor and register its holder; evicts others above the limit. Raises OSError."""
        if len(self._entries) >= self.limit:
            self._evict(_EVICT_AT_ONCE)
        opened = self.retry(open_it)
        self._entries[entry] = None
        return opened

    def opening_for_client(self, entry: Evictable, open_it: Callable[[], int]) -> int:
        """Like `opening`, for a file that clients keep open. Raises: OSError EMFILE if only reserved ones are left."""
        fd = self.opening(entry, open_it)
        if fd < self.first_reserved:
            return fd
        try:  # `opening` may have evicted others, which freed lower numbers
            lower = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)
        finally:
            os.close(fd)
            self.closed(entry)
        if lower >= self.first_reserved:
            os.close(lower)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._entries[entry] = None
        return lower

    def closed(self, entry: Evictable) -> None:
        """Unregister an entry whose descriptor is closed."""
        self._entries.pop(entry, None)

    def _lower_limit(self) -> int:
        """Lower the limit after EMFILE, so that the rest of the process gets descriptors; returns the evicted count."""
        self.limit = max(_LIMIT_MIN, min(self.limit, len(self._entries) - HEADROOM))
        return self._evict(max(_EVICT_AT_ONCE, len(self._entries) - self.limit))

    def _evict(self, count: int) -> int:
        """Close up to `count` of the least recently used entries; those in use become the most recently used."""
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
