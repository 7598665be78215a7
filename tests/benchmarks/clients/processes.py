"""Clients in processes of their own, so that they are not slowed down by each other and by the measurement."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def client_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that run and have librdkafka loaded; they end with the block."""
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_load) as pool:
        barrier = [pool.submit(os.getpid) for _ in range(count * 4)]
        for each in barrier:
            each.result()
        yield pool


def _load() -> None:
    import tests.benchmarks.clients.librdkafka  # noqa: F401
