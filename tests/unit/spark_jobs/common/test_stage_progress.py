"""The progress of batch jobs, with a Spark that is none."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from spark_jobs.common import stage_progress
from spark_jobs.common.stage_progress import StageProgress, StoppedError
from spark_jobs.common.streaming_run import StopRequest

TIMEOUT_S = 10


class FakeContext:
    """Two stages run, unless it says."""

    def __init__(self) -> None:
        self.stages = [
            SimpleNamespace(numCompletedTasks=17, numTasks=30),
            SimpleNamespace(numCompletedTasks=0, numTasks=10),
        ]
        self.cancelled = threading.Event()

    def statusTracker(self) -> FakeContext:
        return self

    def getActiveStageIds(self) -> range:
        return range(len(self.stages) + 1)

    def getStageInfo(self, stage: int) -> SimpleNamespace | None:
        return self.stages[stage] if stage < len(self.stages) else None  # one has ended meanwhile

    def cancelAllJobs(self) -> None:
        self.cancelled.set()


@pytest.fixture
def context() -> FakeContext:
    return FakeContext()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(stage_progress, "LOOK_INTERVAL_S", 0.001)
    monkeypatch.setattr(stage_progress, "say", lines.append)
    return lines


def progress_of(context: FakeContext, stop: StopRequest) -> StageProgress:
    return StageProgress(SimpleNamespace(sparkContext=context), stop, line_interval_s=0.001)


def test_a_line_says_how_many_tasks_are_done(
    context: FakeContext, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = threading.Event()
    monkeypatch.setattr(stage_progress, "say", lambda line: (said.append(line), printed.set()))
    with progress_of(context, StopRequest()) as progress:
        progress.begin("reading")
        printed.clear()
        assert printed.wait(TIMEOUT_S)
    assert said[-1] == "reading: 17 of 40 tasks"


def test_between_stages_there_is_no_line(context: FakeContext) -> None:
    context.stages = []
    assert progress_of(context, StopRequest())._tasks_line() is None


def test_a_job_may_have_a_line_of_its_own(
    context: FakeContext, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = threading.Event()
    monkeypatch.setattr(stage_progress, "say", lambda line: (said.append(line), printed.set()))
    lines = iter([None, "a line of the job"])
    spark = SimpleNamespace(sparkContext=context)
    with StageProgress(spark, StopRequest(), line=lambda: next(lines, None), line_interval_s=0.001):
        assert printed.wait(TIMEOUT_S)
    assert said == ["a line of the job"]


def test_a_request_to_stop_cancels_what_runs(context: FakeContext, said: list[str]) -> None:
    stop = StopRequest()

    def job() -> None:
        with progress_of(context, stop):
            stop.requested = True
            assert context.cancelled.wait(TIMEOUT_S)
            raise RuntimeError("the job was cancelled")

    with pytest.raises(StoppedError, match="stopped before the end"):
        job()
    with pytest.raises(StoppedError, match="stopped before the end"):
        progress_of(context, stop).begin("next")


def test_an_error_of_the_job_stays(context: FakeContext, said: list[str]) -> None:
    with pytest.raises(RuntimeError, match="full disk"), progress_of(context, StopRequest()):
        raise RuntimeError("full disk")
