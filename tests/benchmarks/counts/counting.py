"""Counts what a piece of work makes the interpreter do.

The counts do not depend on the load of the machine, so that a test can hold them. Calls of the code that drives the
work (this project's tests, asyncio) are left out.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Final

SYSTEM_CALLS: Final = frozenset(
    {
        "close",
        "fsync",
        "fdatasync",
        "open",
        "posix_fallocate",
        "pread",
        "preadv",
        "pwrite",
        "pwritev",
        "read",
        "recv",
        "recv_into",
        "send",
        "sendfile",
        "sendmsg",
        "stat",
        "fstat",
        "ftruncate",
        "write",
        "writev",
    }
)
"""Functions of the modules `posix` and `_socket` that stand for one system call each."""

_NATIVE_MODULES: Final = frozenset({"posix", "_socket"})
_LEFT_OUT: Final = ("/tests/", "/asyncio/", "/selectors.py", "/_weakrefset.py")


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one request on average."""

    python_calls: float
    """Of functions written in Python, generators that go on among them."""
    native_calls: float
    """Of functions written in C."""
    system_calls: float
    """Reads and writes of files, and of the socket."""
    peak_bytes: int
    """Memory at the moment of the request when it has most, beyond what was there before."""


class Calls:
    """The calls since `start`."""

    def __init__(self) -> None:
        self.python: Counter[str] = Counter()
        """By function, `file:line name`."""
        self.native: Counter[str] = Counter()
        self.system: Counter[str] = Counter()
        self._is_counted: dict[str, bool] = {}

    def during(self, work: Callable[[], None]) -> None:
        """Count the calls of `work`."""
        sys.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        is_counted = self._is_counted.get(code.co_filename)
        if is_counted is None:
            is_counted = not any(part in code.co_filename for part in _LEFT_OUT)
            self._is_counted[code.co_filename] = is_counted
        if not is_counted:
            return
        if event == "call":
            self.python[f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"] += 1
        elif event == "c_call":
            name = str(getattr(argument, "__name__", argument))
            module = getattr(argument, "__module__", None) or type(getattr(argument, "__self__", None)).__module__
            self.native[f"{module}.{name}"] += 1
            if module in _NATIVE_MODULES and name in SYSTEM_CALLS:
                self.system[name] += 1


def peak_bytes(work: Callable[[], None]) -> int:
    """The most memory that `work` has at any moment, beyond what was there before."""
    tracemalloc.start()
    try:
        work()  # fills the caches of the interpreter
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
