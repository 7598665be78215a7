"""An action in the foreground: its result, its error, and its end when a stop is requested."""

from __future__ import annotations

import threading

import pytest

from spark_jobs.common import batch_run
from spark_jobs.common.batch_run import run_action
from spark_jobs.common.streaming_run import StopRequest


class Cancelled(Exception):
    """What a cancelled action raises."""


class FakeSpark:
    """Cancels the action that waits for `cancelled`."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.sparkContext = self

    def cancelAllJobs(self) -> None:
        self.cancelled.set()

    def action(self) -> None:
        assert self.cancelled.wait(10)
        raise Cancelled


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_run, "LOOK_INTERVAL_S", 0.001)
    monkeypatch.setattr(batch_run, "PROGRESS_INTERVAL_S", 0)


def test_an_action_has_a_result_or_an_error() -> None:
    spark = FakeSpark()
    assert run_action(spark, lambda: 3, StopRequest()) == 3  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        run_action(spark, lambda: 1 // 0, StopRequest())  # type: ignore[arg-type]
    assert not spark.cancelled.is_set()


def test_progress_is_reported_while_it_runs() -> None:
    reported = threading.Event()
    assert run_action(FakeSpark(), lambda: reported.wait(10), StopRequest(), reported.set)  # type: ignore[arg-type]


def test_a_stop_cancels_the_action() -> None:
    spark, stop = FakeSpark(), StopRequest()
    stop.requested = True
    assert run_action(spark, spark.action, stop) is None  # type: ignore[arg-type]


def test_an_error_without_a_stop_is_raised() -> None:
    spark = FakeSpark()
    spark.cancelled.set()
    with pytest.raises(Cancelled):
        run_action(spark, spark.action, StopRequest())  # type: ignore[arg-type]
