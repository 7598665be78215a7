"""One broker that measures the pauses of its loop, and the longest pause in each situation.

The broker logs every pause beyond `NOTED_MS` with its cause (`odradek.event.loop.pause.ms`). Each has three figures:
how late the loop was, its own part of that, without the time for which the kernel counts the thread as ready without a
core, and its processor time. On a machine that others use, too, the first one is not the broker's, and the second one
contains waits for the interpreter's lock, whose holder may be without a core.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measure import resident_mb, usage_of
from tests.support.processes.odradek_process import OdradekBroker

NOTED_MS = 5
LIMIT_MS = 50
SETTLED_S = 0.15
"""How long the loop is watched after the last answer: postponed work belongs to the situation, too."""
LONGEST_START_S = 150
SETTINGS: Mapping[str, str] = {
    "odradek.event.loop.pause.ms": str(NOTED_MS),
    "offsets.topic.num.partitions": "50",
    "log.cleaner.enable": "false",  # has a benchmark of its own
    "auto.create.topics.enable": "false",
    "transaction.partition.verification.enable": "false",  # commits within transactions are taken without a transaction
}
HELD_UP = re.compile(
    r"The event loop was held up for (\d+) ms \((\d+) ms computing, (\d+) ms in system calls, (\d+) ms without a core, "
    r"the rest waiting\) by (.*)"
)


class Pause(NamedTuple):
    """One time the loop was late; `where` is the callback that was found, if the watching thread was in time."""

    late_ms: int
    own_ms: int
    cpu_ms: int
    where: str


def pauses_in(log: str) -> list[Pause]:
    return [
        Pause(int(late), max(0, int(late) - int(queued)), int(user) + int(system), where)
        for late, user, system, queued, where in HELD_UP.findall(log)
    ]


class WatchedBroker:
    """An Odradek broker, and a row with the pauses of each situation. `beyond` are the names over the limit."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.broker = OdradekBroker(directory, {**SETTINGS, **settings})
        self.broker.start_timeout_s = self.broker.stop_timeout_s = LONGEST_START_S
        self.beyond: list[str] = []

    @contextmanager
    def situation(self, name: str) -> Iterator[None]:
        """Print the pauses during the block as one row."""
        seen, used = len(self.broker.log_text()), usage_of(self.broker.pid)
        started = time.perf_counter()
        yield
        took_s = time.perf_counter() - started
        time.sleep(SETTLED_S)
        self._report(name, took_s, (usage_of(self.broker.pid) - used).total_s, self.broker.log_text()[seen:])

    def start(self, name: str) -> None:
        """Start the broker, as a row of its own."""
        started = time.perf_counter()
        self.broker.start()
        took_s = time.perf_counter() - started
        time.sleep(SETTLED_S)
        self._report(name, took_s, usage_of(self.broker.pid).total_s, self.broker.log_text())

    def _report(self, name: str, took_s: float, cpu_s: float, log: str) -> None:
        pauses = pauses_in(log)
        longest = max(pauses, key=lambda pause: pause.own_ms, default=Pause(0, 0, 0, ""))
        latest_ms = max((pause.late_ms for pause in pauses), default=0)
        busiest_ms = max((pause.cpu_ms for pause in pauses), default=0)
        print(
            f"{name:<58}{longest.own_ms:>7}{busiest_ms:>7}{latest_ms:>7}{took_s:>9.2f}{cpu_s:>9.2f}{resident_mb(self.broker.pid):>8.0f}"
            f"  {longest.where if longest.own_ms > LIMIT_MS else ''}",
            flush=True,
        )
        if longest.own_ms > LIMIT_MS:
            self.beyond.append(name)


def print_header(title: str) -> None:
    """`own`, `cpu` and `late` are the longest pause in ms, `s` is how long it all took; processor time and memory are
    the broker's.
    """
    print(f"\n{title:<58}{'own':>7}{'cpu':>7}{'late':>7}{'s':>9}{'CPU s':>9}{'MB':>8}", flush=True)
