"""The thresholds of the C library's allocator, from which Python takes every block of more than 512 bytes.

An allocation of `MMAP_THRESHOLD_BYTES` or more gets pages of its own, which grow without a copy and go back to the
system when it is freed. glibc raises that threshold to the largest block that was ever freed, up to 32 MB; then one
large request is enough for long arrays to be made in the heap from there on, where each growth copies them and leaves a
hole. What a request of 1 MB needs at its peak was 26 MB instead of 12.

Free memory at the end of the heap goes back to the system when there is more of it than `TRIM_THRESHOLD_BYTES`. With
glibc's 128 KB this happens, and the pages are cleared again, for almost every Produce request with batches of 128 KB,
which cost a third of the broker's time.

Only glibc has `mallopt`; other allocators are left as they are, and so is one that the environment configures.
Source: mallopt(3).
"""

from __future__ import annotations

import os
from typing import Final

MMAP_THRESHOLD_BYTES: Final = 256 * 1024
"""uvloop's buffer of a TLS connection has this size. Were it in the heap, it would leave holes there."""
TRIM_THRESHOLD_BYTES: Final = 4 << 20

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

_OWN_SETTINGS: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
"""Environment variables that glibc reads when a process starts."""


def set_thresholds() -> bool:
    """Whether they are set. For the whole process."""
    if any(name in os.environ for name in _OWN_SETTINGS):
        return False
    import ctypes  # takes 2 ms, which only the broker's process needs

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    set_both: bool = bool(mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)) and bool(
        mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    )
    return set_both
