"""A streaming query in the foreground: a line for every micro-batch, and an end that lets the batch in flight finish.

SIGTERM and SIGINT ask for the end; the second of them ends the process at once. A batch that is broken off, by that
or because it does not finish within a minute, costs only time: the checkpoint has it, and the next run does it again.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LOOK_INTERVAL_S = 0.2
FINISHING_INTERVAL_S = 0.02
FINISHING_LIMIT_S = 60
SHOWN_PARTITIONS = 8
DONE, STOPPED = "done", "stopped"
LOOKING_FOR_DATA = "Getting offsets"  # what Spark calls it in a query's status

Offsets = dict[str, dict[str, int]]


class StopRequest:
    """Set when a signal has asked for the end."""

    def __init__(self) -> None:
        self.requested = False

    def install(self) -> None:
        """Take SIGTERM and SIGINT; after the session has started, which takes SIGINT itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self.requested:
            os._exit(128 + number)  # no atexit: PySpark's would wait for the JVM
        self.requested = True

    def wait_until(self, due_s: float) -> bool:
        """Sleep until a moment of `time.monotonic`, or until the end is asked for. Returns whether it is."""
        while not self.requested and (left_s := due_s - time.monotonic()) > 0:
            time.sleep(min(left_s, LOOK_INTERVAL_S))
        return self.requested


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A finished micro-batch, as Spark reports it."""

    number: int
    records: int
    records_per_second: float
    ends: Offsets  # the offset that the next batch begins with
    lag: int  # what the topics held beyond that, when the batch began
    report: Mapping[str, object] = field(default_factory=dict, repr=False)  # all that Spark says of it

    @classmethod
    def of(cls, progress: Mapping[str, object]) -> Batch | None:
        """None for a progress report without a batch: of a trigger that found nothing."""
        if "addBatch" not in _mapping(progress["durationMs"]):
            return None
        sources = progress["sources"]
        assert isinstance(sources, Sequence)
        ends: Offsets = {}
        lag = 0
        for source in sources:
            end = _offsets(source["endOffset"])
            ends.update(end)
            lag += _distance(end, _offsets(source["latestOffset"]))
        return cls(
            number=int(str(progress["batchId"])),
            records=int(str(progress["numInputRows"])),
            records_per_second=float(str(progress["processedRowsPerSecond"])),
            ends=ends,
            lag=lag,
            report=progress,
        )

    def line(self) -> str:
        """For the terminal: `batch 7: 1200 records, 843/s, up to events 0:400 1:400 2:400, lag 0`."""
        shown: list[str] = []
        partitions = 0
        for topic in sorted(self.ends):
            of_topic = sorted(self.ends[topic].items(), key=lambda end: int(end[0]))
            room = SHOWN_PARTITIONS - partitions
            if room > 0:
                shown.append(" ".join([topic, *(f"{partition}:{offset}" for partition, offset in of_topic[:room])]))
            partitions += len(of_topic)
        more = f" and {partitions - SHOWN_PARTITIONS} more" if partitions > SHOWN_PARTITIONS else ""
        return (
            f"batch {self.number}: {self.records} records, {self.records_per_second:.0f}/s, "
            f"up to {', '.join(shown)}{more}, lag {self.lag}"
        )


def with_trigger(writer: DataStreamWriter, trigger_ms: int | None) -> DataStreamWriter:
    """Start a batch every so many ms; None: process what is there now, then end."""
    if trigger_ms is None:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{trigger_ms} milliseconds")


def follow(query: StreamingQuery, stop: StopRequest, on_batch: Callable[[Batch], None]) -> str:
    """Wait for the end of the query, or for a request to stop it; raises the error of the query.

    Returns which of the two it was, for the last line of the job: `done` or `stopped`.
    """
    ending = DONE
    reporter = _Reporter(query, on_batch)
    while not has_ended(query):
        reporter.report()
        if stop.requested:
            _finish_batch(query)
            query.stop()
            ending = STOPPED
            break
    reporter.report()
    return ending


def has_ended(query: StreamingQuery) -> bool:
    """Wait a moment for the end of the query, and return whether it has ended. Raises its error."""
    return query.awaitTermination(LOOK_INTERVAL_S) is True  # type: ignore[arg-type]  # declared int, taken as float


def _finish_batch(query: StreamingQuery) -> None:
    """Wait until the batch in flight, if there is one, is committed; but not for brokers that may never come back."""
    last = _identity(query.lastProgress)
    deadline = time.monotonic() + FINISHING_LIMIT_S
    while query.isActive and _is_processing(query.status) and _identity(query.lastProgress) == last:
        if time.monotonic() > deadline:
            return
        time.sleep(FINISHING_INTERVAL_S)


def _is_processing(status: Mapping[str, object]) -> bool:
    """Whether a batch is in flight. Spark's query for the latest offsets is none, and takes long without brokers."""
    return bool(status["isTriggerActive"]) and not str(status["message"]).startswith(LOOKING_FOR_DATA)


class _Reporter:
    """Prints each batch once, in order.

    Spark keeps the last hundred reports. Fetching them all is slow and only needed when more than one is new.
    """

    def __init__(self, query: StreamingQuery, on_batch: Callable[[Batch], None]) -> None:
        self._query = query
        self._on_batch = on_batch
        self._told: int | None = None

    def report(self) -> None:
        last = self._query.lastProgress
        if last is None or last["batchId"] == self._told:
            return
        only_one = self._told is not None and last["batchId"] == self._told + 1
        for progress in [last] if only_one else self._query.recentProgress:
            batch = Batch.of(progress)
            if batch is not None and (self._told is None or batch.number > self._told):
                self._told = batch.number
                self._on_batch(batch)


def _identity(progress: StreamingQueryProgress | None) -> tuple[int, str] | None:
    """What differs between two reports: comparing them whole would compare rates, which may be NaN."""
    return None if progress is None else (progress["batchId"], progress["timestamp"])


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value


def _offsets(text: str | None) -> Offsets:
    """Kafka's offsets in a report: JSON text, or what PySpark makes of none."""
    return {} if text in (None, "", "None", "null") else json.loads(text)


def _distance(ends: Offsets, latest: Offsets) -> int:
    """How many offsets lie between the two, over the partitions that both know."""
    return sum(
        max(0, latest.get(topic, {}).get(partition, offset) - offset)
        for topic, of_topic in ends.items()
        for partition, offset in of_topic.items()
    )
