"""One action of Spark in the foreground: progress while it runs, and an end when a signal asks for it.

The action runs in a thread, so that the main thread sees signals. When a stop is requested, its tasks are cancelled:
the next run must do again what was broken off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.common.streaming_run import StopRequest

T = TypeVar("T")
LOOK_INTERVAL_S = 0.2
PROGRESS_INTERVAL_S = 5.0


def run_action(
    spark: SparkSession, call: Callable[[], T], stop: StopRequest, on_progress: Callable[[], None] = lambda: None
) -> T | None:
    """The result of `call`, an action of Spark; None if a stop was requested before it was done. Raises its error.

    `on_progress` is called in this thread every few seconds.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="action") as pool:
        action = pool.submit(call)
        next_progress = time.monotonic() + PROGRESS_INTERVAL_S
        while not wait([action], LOOK_INTERVAL_S).done:
            if stop.requested:
                spark.sparkContext.cancelAllJobs()  # again, if the action has begun another one meanwhile
            elif time.monotonic() >= next_progress:
                on_progress()
                next_progress = time.monotonic() + PROGRESS_INTERVAL_S
        if stop.requested and action.exception() is not None:
            return None
        return action.result()
