"""Progress of a batch job: a line every few seconds, such as how many tasks of the running stages are done.

A thread watches Spark's status. It also cancels the job when SIGTERM or SIGINT has asked for the end: the main thread
waits in the JVM then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from spark_jobs.common.job import JobError, say

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from spark_jobs.common.streaming_run import StopRequest

LOOK_INTERVAL_S = 0.2
LINE_INTERVAL_S = 5.0


class StoppedError(JobError):
    """SIGTERM or SIGINT has ended the job."""

    def __init__(self) -> None:
        super().__init__("stopped before the end")


class StageProgress:
    """A context: within it lines are printed, and a request to stop cancels Spark's tasks and raises StoppedError.

    `line`: makes what is printed; None: nothing this time.
    """

    def __init__(
        self,
        spark: SparkSession,
        stop: StopRequest,
        *,
        line: Callable[[], str | None] | None = None,
        line_interval_s: float = LINE_INTERVAL_S,
    ) -> None:
        self._context: SparkContext = spark.sparkContext
        self._stop = stop
        self._looks_per_line = max(1, round(line_interval_s / LOOK_INTERVAL_S))
        self._line = line or self._tasks_line
        self._step = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stage-progress", daemon=True)

    def begin(self, step: str) -> None:
        """Name what is done next. Raises: StoppedError if the end was asked for."""
        if self._stop.requested:
            raise StoppedError
        self._step = step

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if error is not None and self._stop.requested:
            raise StoppedError from None

    def _watch(self) -> None:
        looks = 0
        while not self._ended.wait(LOOK_INTERVAL_S):
            if self._stop.requested:
                self._context.cancelAllJobs()
                continue
            looks += 1
            if looks % self._looks_per_line == 0 and (line := self._line()) is not None:
                say(line)

    def _tasks_line(self) -> str | None:
        """`reading and matching: 17 of 40 tasks`; None between two stages."""
        tracker = self._context.statusTracker()
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
        if not stages:
            return None
        done, tasks = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
        return f"{self._step}: {done} of {tasks} tasks"
