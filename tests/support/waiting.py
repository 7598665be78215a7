"""Waiting for a state that another process reaches, with a limit and a reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], *, accept: Callable[[T], bool] = bool, timeout_s: float = 15) -> T:
    """Call `look` until `accept` takes its answer; the last answer is in the failure."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = look()
        if accept(seen):
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"not reached within {timeout_s} s; the last state was {seen!r}")
        time.sleep(0.05)
