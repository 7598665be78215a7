"""The line of a batch, and following a query to its end, with a query that is only played."""

from __future__ import annotations

import json
import signal

import pytest

from spark_jobs.common import streaming_run
from spark_jobs.common.streaming_run import Batch, StopRequest, follow


def progress(number: int, *, end: object = None, latest: object = None, records: int = 5, ran: bool = True) -> dict:
    return {
        "batchId": number,
        "timestamp": f"2024-01-01T00:00:{number:02}",
        "durationMs": {"addBatch": 7, "triggerExecution": 9} if ran else {"latestOffset": 1},
        "numInputRows": records,
        "processedRowsPerSecond": 12.6 if records else float("nan"),
        "sources": [
            {
                "endOffset": json.dumps(end or {"events": {"0": 5}}),
                "latestOffset": "None" if latest is None else json.dumps(latest),
            }
        ],
    }


class PlayedQuery:
    """Plays a list of looks: whoever waits or asks for the status comes to the next one, and what it reports."""

    def __init__(self, looks: list[list[dict]], *, stop: StopRequest | None = None, stop_at_look: int = 0) -> None:
        self._looks = looks
        self._look = 0
        self._stop = stop
        self._stop_at_look = stop_at_look
        self.recentProgress: list[dict] = []
        self.trigger_active = True
        self.message = "Processing new data"
        self.isActive = True
        self.stopped_after: int | None = None

    @property
    def lastProgress(self) -> dict | None:
        return self.recentProgress[-1] if self.recentProgress else None

    @property
    def status(self) -> dict[str, object]:
        self._next_look()
        return {"isTriggerActive": self.trigger_active, "message": self.message}

    def awaitTermination(self, _timeout: float) -> bool:
        self._next_look()
        return self._look == len(self._looks)

    def stop(self) -> None:
        self.stopped_after = self.recentProgress[-1]["batchId"]

    def _next_look(self) -> None:
        self.recentProgress += self._looks[self._look]
        self._look += 1
        if self._stop is not None and self._look == self._stop_at_look:
            self._stop.requested = True


def test_the_line_of_a_batch() -> None:
    batch = Batch.of(
        progress(7, end={"events": {"10": 3, "2": 400}}, latest={"events": {"10": 3, "2": 410, "11": 9}}, records=1200)
    )
    assert batch is not None
    assert batch.line() == "batch 7: 1200 records, 13/s, up to events 2:400 10:3, lag 10"


def test_a_line_shows_no_more_than_eight_partitions() -> None:
    ends = {"a": {str(p): p for p in range(6)}, "b": {str(p): p for p in range(30)}, "c": {"0": 1}}
    batch = Batch.of(progress(0, end=ends, records=0))
    assert batch is not None
    assert batch.line() == "batch 0: 0 records, nan/s, up to a 0:0 1:1 2:2 3:3 4:4 5:5, b 0:0 1:1 and 29 more, lag 0"


def test_a_report_of_no_batch_is_no_batch() -> None:
    assert Batch.of(progress(3, ran=False)) is None


def test_every_batch_is_printed_once_in_order() -> None:
    looks = [[], [progress(4), progress(5)], [], [progress(6)], [progress(7, ran=False)], [progress(7), progress(8)]]
    told: list[int] = []
    assert follow(PlayedQuery(looks), StopRequest(), lambda batch: told.append(batch.number)) == "done"
    assert told == [4, 5, 6, 7, 8]


def test_a_stop_waits_for_the_batch_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming_run, "FINISHING_INTERVAL_S", 0)
    stop = StopRequest()
    query = PlayedQuery([[progress(0)], [], [], [progress(1)], [progress(2)]], stop=stop, stop_at_look=2)
    told: list[int] = []
    assert follow(query, stop, lambda batch: told.append(batch.number)) == "stopped"
    assert query.stopped_after == 1
    assert told == [0, 1]


@pytest.mark.parametrize(
    ("trigger_active", "message"),
    [(False, "Waiting for next trigger"), (True, "Getting offsets from KafkaV2[Subscribe[events]]")],
)
def test_a_stop_between_two_batches_is_immediate(trigger_active: bool, message: str) -> None:
    stop = StopRequest()
    query = PlayedQuery([[progress(0)], [], [progress(1)]], stop=stop, stop_at_look=1)
    query.trigger_active, query.message = trigger_active, message
    follow(query, stop, lambda _: None)
    assert query.stopped_after == 0


def test_a_batch_that_does_not_finish_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming_run, "FINISHING_LIMIT_S", -1)
    stop = StopRequest()
    query = PlayedQuery([[progress(0)], [], []], stop=stop, stop_at_look=1)
    follow(query, stop, lambda _: None)
    assert query.stopped_after == 0


def test_a_wait_ends_when_it_is_due_or_with_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, slept = 10.0, []
    stop = StopRequest()

    def sleep(seconds: float) -> None:
        nonlocal now_s
        slept.append(seconds)
        now_s += seconds
        stop.requested = now_s > 12

    monkeypatch.setattr(streaming_run.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(streaming_run.time, "sleep", sleep)
    assert not stop.wait_until(10.5)
    assert slept == pytest.approx([0.2, 0.2, 0.1])
    assert stop.wait_until(100)
    assert now_s < 13
    assert stop.wait_until(0)


def test_the_second_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(streaming_run.os, "_exit", statuses.append)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    stop = StopRequest()
    try:
        stop.install()
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        assert statuses == []
        signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert statuses == [143]
