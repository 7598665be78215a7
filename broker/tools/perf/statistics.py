"""The figures of the perf commands, computed and printed as Apache's tools do it.

Kafka: ProducerPerformance.Stats, ConsumerPerformance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from odradek.timer.clock import local_time

MEGABYTE: Final = 1024 * 1024
REPORTING_INTERVAL_MS: Final = 5_000
MAX_SAMPLES: Final = 500_000
"""Latencies that are kept for the percentiles."""


class ProduceFigures(NamedTuple):
    """What `perf produce` has measured."""

    records_sent: int
    records_per_second: float
    megabytes_per_second: float
    average_latency_ms: float
    max_latency_ms: int
    p50_latency_ms: int
    p95_latency_ms: int
    p99_latency_ms: int
    p999_latency_ms: int

    @property
    def line(self) -> str:
        """The last line of Apache's tool."""
        return (
            f"{self.records_sent} records sent, {self.records_per_second:f} records/sec "
            f"({self.megabytes_per_second:.2f} MB/sec), "
            f"{self.average_latency_ms:.2f} ms avg latency, {self.max_latency_ms:.2f} ms max latency, "
            f"{self.p50_latency_ms} ms 50th, {self.p95_latency_ms} ms 95th, {self.p99_latency_ms} ms 99th, "
            f"{self.p999_latency_ms} ms 99.9th."
        )


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

    def total(self, now_ms: int) -> ProduceFigures:
        """Of all records."""
        elapsed_ms = now_ms - self._start_ms
        return ProduceFigures(
            self.count,
            _rate(self.count, elapsed_ms),
            _rate(self._bytes, elapsed_ms) / MEGABYTE,
            _ratio(self._total_latency, self.count),
            self._max_latency,
            *percentiles(self._latencies, 0.5, 0.95, 0.99, 0.999),
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


class ConsumeFigures(NamedTuple):
    """What `perf consume` has measured, of all records or of an interval."""

    consumed_megabytes: float
    """Since the beginning."""
    megabytes_per_second: float
    records: int
    """Since the beginning."""
    records_per_second: float
    rebalance_time_ms: int
    fetch_time_ms: int
    """Without the rebalances."""
    fetch_megabytes_per_second: float
    fetch_records_per_second: float

    @property
    def fields(self) -> str:
        """The last fields of a line of Apache's tool."""
        return ", ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in self)


def consume_figures(
    size: int, count: int, elapsed_ms: int, rebalance_ms: int, *, before: tuple[int, int] = (0, 0)
) -> ConsumeFigures:
    """`before`: the bytes and the records at the beginning of the interval."""
    fetch_ms = elapsed_ms - rebalance_ms
    megabytes, records = (size - before[0]) / MEGABYTE, count - before[1]
    return ConsumeFigures(
        consumed_megabytes=size / MEGABYTE,
        megabytes_per_second=_ratio(1000 * megabytes, elapsed_ms),
        records=count,
        records_per_second=_ratio(1000 * records, elapsed_ms),
        rebalance_time_ms=rebalance_ms,
        fetch_time_ms=fetch_ms,
        fetch_megabytes_per_second=_ratio(1000 * megabytes, fetch_ms),
        fetch_records_per_second=_ratio(1000 * records, fetch_ms),
    )


def date_format(pattern: str) -> Callable[[int], str]:
    """A function from milliseconds to local time, for a pattern of Java's SimpleDateFormat with figures only.

    Raises: ValueError for another letter than y, M, d, H, m, s and S.
    """
    fields = "yMdHmsS"  # the first six in the order of `struct_time`
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        end = position
        while end < len(pattern) and pattern[end] == letter:
            end += 1
        if letter in fields:
            parts.append(letter)
        elif letter.isalpha():
            raise ValueError(f"--date-format: the letter {letter} is not known; known are {', '.join(fields)}")
        else:
            parts.append(letter * (end - position))
        position = end

    def text(time_ms: int) -> str:
        values = dict(zip(fields, local_time(time_ms)[:6], strict=False))
        texts = {letter: f"{value:02d}" for letter, value in values.items()} | {"S": f"{time_ms % 1000:03d}"}
        return "".join(texts.get(part, part) for part in parts)

    return text
