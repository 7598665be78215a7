"""Figures of a process and how they are shown: processor time, latencies, and tables of two columns and a ratio."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds of a process and its worker processes, all their threads together."""

    user_s: float
    system_s: float

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(self.user_s - earlier.user_s, self.system_s - earlier.system_s)


def usage_of(pid: int) -> Usage:
    """Of a process, of the children that run, and of those that have ended and that it has waited for."""
    process = psutil.Process(pid)
    times = process.cpu_times()
    user_s, system_s = times.user + times.children_user, times.system + times.children_system
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended in the meantime
            times = child.cpu_times()
            user_s, system_s = user_s + times.user, system_s + times.system
    return Usage(user_s, system_s)


def resident_mb(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of them do not exceed. `values` are sorted."""
    return values[min(len(values) - 1, int(share * len(values)))]


class Table:
    """Rows of a name, a figure of Odradek, the same of Apache Kafka, and how many times the one is the other."""

    def __init__(self, title: str) -> None:
        print(f"\n{title}\n{'':<48}{'Odradek':>12}{'Apache':>12}{'ratio':>8}")

    def row(self, name: str, unit: str, odradek: float, apache: float, note: str = "") -> None:
        """Printed at once, so that a benchmark that is stopped has printed its rows so far."""
        ratio = f"{odradek / apache:8.2f}" if apache else f"{'':>8}"
        figures = f"{odradek:>12.{_decimals(odradek)}f}{apache:>12.{_decimals(apache)}f}"
        print(f"{f'{name}, {unit}':<48}{figures}{ratio}  {note}".rstrip())


def _decimals(value: float) -> int:
    """Three significant digits."""
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
