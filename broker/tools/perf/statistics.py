"""The figures of the perf commands, computed and printed as Apache's tools do it.

Kafka: ProducerPerformance.Stats, ConsumerPerformance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

MEGABYTE: Final = 1024 * 1024
REPORTING_INTERVAL_MS: Final = 5_000
MAX_SAMPLES: Final = 500_000
"""Latencies that are kept for the percentiles."""


class ProduceStatistics:
    """Latencies of acknowledged records; every five seconds a line about the window since the last one."""

    def __init__(self, record_count: int, now_ms: int, report: Callable[[str], object]) -> None:
        self._start_ms = self._window_start_ms = now_ms
        self._sampling = max(1, record_count // max(1, min(record_count, MAX_SAMPLES)))
        self._report = report
        self._latencies: list[int] = []
        self.count = 0
        self._bytes = self._total_latency = self._max_latency = 0
        self._window_count = self._window_bytes = self._window_latency = self._window_max = 0

    def record(self, latency_ms: int, size: int, now_ms: int) -> None:
        """One record of `size` bytes was acknowledged."""
        if self.count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self.count += 1
        self._bytes += size
        self._total_latency += latency_ms
        self._max_latency = max(self._max_latency, latency_ms)
        self._window_count += 1
        self._window_bytes += size
        self._window_latency += latency_ms
        self._window_max = max(self._window_max, latency_ms)
        if now_ms - self._window_start_ms >= REPORTING_INTERVAL_MS:
            self._report(self._window_line(now_ms))
            self._window_start_ms = now_ms
            self._window_count = self._window_bytes = self._window_latency = self._window_max = 0

    def _window_line(self, now_ms: int) -> str:
        elapsed_ms = now_ms - self._window_start_ms
        return (
            f"{self._window_count} records sent, {_rate(self._window_count, elapsed_ms):.1f} records/sec "
            f"({_rate(self._window_bytes, elapsed_ms) / MEGABYTE:.2f} MB/sec), "
            f"{_ratio(self._window_latency, self._window_count):.1f} ms avg latency, "
            f"{self._window_max:.1f} ms max latency."
        )

    def total_line(self, now_ms: int) -> str:
        """The last line."""
        elapsed_ms = now_ms - self._start_ms
        p50, p95, p99, p999 = percentiles(self._latencies, 0.5, 0.95, 0.99, 0.999)
        return (
            f"{self.count} records sent, {_rate(self.count, elapsed_ms):f} records/sec "
            f"({_rate(self._bytes, elapsed_ms) / MEGABYTE:.2f} MB/sec), "
            f"{_ratio(self._total_latency, self.count):.2f} ms avg latency, {self._max_latency:.2f} ms max latency, "
            f"{p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )


def percentiles(values: Sequence[int], *shares: float) -> list[int]:
    """The values below which these shares of all lie; zeros without values."""
    ordered = sorted(values)
    return [ordered[int(share * len(ordered))] if ordered else 0 for share in shares]


def _rate(amount: int, elapsed_ms: int) -> float:
    return _ratio(1000 * amount, elapsed_ms)


def _ratio(amount: float, count: float) -> float:
    return amount / count if count else 0.0


CONSUME_HEADER: Final = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
CONSUME_HEADER_END: Final = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


def consume_header(*, detailed: bool) -> str:
    """The first line of `perf consume`."""
    return f"{'time, threadId' if detailed else 'start.time, end.time'}, {CONSUME_HEADER}, {CONSUME_HEADER_END}"


def consume_figures(size: int, count: int, elapsed_ms: int, rebalance_ms: int) -> tuple[str, str, str, str]:
    """MB/s, records/s; and the same for the time without rebalances."""
    fetch_ms = elapsed_ms - rebalance_ms
    megabytes = size / MEGABYTE
    found = (megabytes, elapsed_ms), (count, elapsed_ms), (megabytes, fetch_ms), (count, fetch_ms)
    first, second, third, fourth = (f"{_ratio(1000 * amount, time_ms):.4f}" for amount, time_ms in found)
    return first, second, third, fourth


def date_format(pattern: str) -> Callable[[int], str]:
    """A function from milliseconds to local time, for a pattern of Java's SimpleDateFormat with figures only.

    Raises: ValueError for another letter than y, M, d, H, m, s and S.
    """
    fields = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S", "S": "%f"}
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        end = position
        while end < len(pattern) and pattern[end] == letter:
            end += 1
        if letter in fields:
            parts.append(fields[letter])
        elif letter.isalpha():
            raise ValueError(f"--date-format: the letter {letter} is not known; known are {', '.join(fields)}")
        else:
            parts.append(letter * (end - position))
        position = end

    def text(time_ms: int) -> str:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone()
        return "".join(
            f"{time_ms % 1000:03d}" if part == "%f" else moment.strftime(part) if part.startswith("%") else part
            for part in parts
        )

    return text
