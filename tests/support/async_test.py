"""Coroutines as tests: one event loop and a time limit for each test."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import ParamSpec

P = ParamSpec("P")

TIME_LIMIT_S = 20


def async_test(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Run a test coroutine to its end on a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), TIME_LIMIT_S))

    return run
