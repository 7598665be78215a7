"""Counts the calls of functions that a piece of code makes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.garbage import no_collection


class CallCount:
    """How many functions have been called, also those in C. It may be set to 0 meanwhile."""

    def __init__(self) -> None:
        self.calls = 0

    def note(self, frame: object, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")


@contextmanager
def counted_calls() -> Iterator[CallCount]:
    """Counts the calls of this thread inside the block.

    A collection there would call the finalizers of whatever other tests have left.
    """
    count = CallCount()
    with no_collection():
        sys.setprofile(count.note)
        try:
            yield count
        finally:
            sys.setprofile(None)
