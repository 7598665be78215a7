"""Clients in processes of their own, so that they are not slowed down by each other and by the measurement."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final

HOLD_S: Final = 0.05


@contextmanager
def client_processes(count: int, cores: Sequence[int] = ()) -> Iterator[ProcessPoolExecutor]:
    """Processes that run and have librdkafka loaded; they end with the block. `cores`: those they may use."""
    with ProcessPoolExecutor(
        count, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(tuple(cores),)
    ) as pool:
        ready: set[int] = set()
        while len(ready) < count:
            ready |= {each.result() for each in [pool.submit(_who) for _ in range(count)]}
        yield pool


def _begin(cores: Sequence[int]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)
    import tests.benchmarks.clients.librdkafka  # noqa: F401


def _who() -> int:
    """Holds the process for a moment, so that the others of the pool get work, too."""
    time.sleep(HOLD_S)
    return os.getpid()
