"""Brokers that are started, reset and stopped again and again in one process leave nothing behind."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

import pytest

from odradek.testing import Broker
from tests.support.disks.open_descriptors import count_after_collection
from tests.support.testing import asking  # noqa: F401 - registers the questions
from tests.support.waiting import eventually

WARM_START_MS = 30
"""What the kit promises for the median of starts in a process that has started a broker before."""

BUSY_MACHINE = 10
"""How much longer it may take while other tests run beside this one."""


def starts_and_stops(count: int) -> float:
    """The median of the start times in ms. Two brokers run at a time, so that their ports must differ."""
    threads = threading.active_count()
    Broker().start().stop()
    eventually(threading.active_count, accept=lambda count: count == threads)
    before = count_after_collection(), threads
    times_ms = []
    running: list[Broker] = []
    for _ in range(count):
        started_s = time.perf_counter()
        running.append(Broker().start())
        times_ms.append((time.perf_counter() - started_s) * 1000)
        assert len({broker.bootstrap_servers for broker in running}) == len(running)
        if len(running) == 2:
            running.pop(0).stop()
    running.pop().stop()
    eventually(threading.active_count, accept=lambda count: count == before[1])  # the last one may be about to end
    assert count_after_collection() == before[0]
    return statistics.median(times_ms)


def test_starts_and_stops_leave_no_thread_and_no_descriptor() -> None:
    assert starts_and_stops(20) < WARM_START_MS * BUSY_MACHINE


@pytest.mark.soak
def test_a_thousand_starts_and_stops() -> None:
    median_ms = starts_and_stops(1000)
    print(f"median of 1,000 starts: {median_ms:.1f} ms")
    assert median_ms < WARM_START_MS


def test_resets_leave_no_thread_no_descriptor_and_no_file() -> None:
    with Broker() as broker:
        broker.reset()
        before = count_after_collection(), threading.active_count()
        directory = Path(str(broker.ask("log_directory"))).parent
        for _ in range(20):
            broker.reset()
            assert len(list(directory.iterdir())) == 1
        assert (count_after_collection(), threading.active_count()) == before
