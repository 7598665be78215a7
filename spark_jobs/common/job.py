"""The skeleton that every job runs in: signals, checks, the session, and one line for what went wrong.

`run_job` is the body of each `main`. Its checks run before a JVM is started, so that a wrong address or a folder that
is not there costs no ten seconds. Status 0: done, or stopped by SIGTERM or SIGINT after the batch in flight; 1: an
error, one line on stderr; 2: a wrong command line (argparse).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.common.connector import SetupError, first_line, spark_session
from spark_jobs.common.streaming_run import StopRequest

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

WRAPPINGS = (
    re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: "),
    re.compile(r"(?: SQLSTATE: \w{5})+$"),
    re.compile(
        r"^(?:[\w.]+: )?Job aborted due to stage failure: Task .+? Lost task \S+ in stage \S+ \(.+?\) \(.+?\): "
    ),
    re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error): )"),
)
WORKER_ERROR = re.compile(r"Traceback \(most recent call last\):\n(?:  .*\n)*[\w.]+: (.+)$", re.MULTILINE)
"""An error that was raised in a Python worker, below the words of Spark."""
JAVA_ERROR = re.compile(r"^[\w.]+: An error occurred while calling \w+\.\w+\.\n: (.+)$", re.MULTILINE)
"""An error of Java in a Python function that Spark has called for a micro-batch."""

MOST_CAUSES = 20
IO_PACKAGES = ("java.io.", "java.nio.file.", "org.apache.hadoop.")


class JobError(Exception):
    """The job cannot run like this; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How Spark runs a job."""

    master: str | None = None  # None: local[*], or what spark-submit says
    conf: tuple[tuple[str, str], ...] = ()
    log_level: str = "FATAL"


def no_check() -> None:
    """For a job that has nothing to check before Spark starts."""


def run_job(
    name: str,
    options: RunOptions,
    job: Callable[[SparkSession, StopRequest], int | None],
    *,
    check: Callable[[], None] = no_check,
) -> int:
    """Run a job to its end. Returns the exit status: that of the job if it returns one, else 0 or 1."""
    stop = StopRequest()
    stop.install()
    try:
        check()
        spark = spark_session(name, master=options.master, conf=dict(options.conf), log_level=options.log_level)
    except (SetupError, JobError) as error:
        return fail(name, str(error))
    stop.install()  # PySpark has put its own handler of SIGINT in place
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return job(spark, stop) or 0
    except (JobError, SetupError, PySparkException, Py4JJavaError) as error:
        return fail(name, message_of(error))
    finally:
        spark.stop()


def message_of(error: Exception) -> str:
    """The line of an error of Spark, or of a job. Why a file cannot be written, Spark says at the end of its causes."""
    # PySpark has no class of its own for some errors, such as a folder that cannot be written.
    java_exception = getattr(error, "java_exception", None)
    line = reason(str(error) if java_exception is None else str(java_exception.toString()))
    io_reason = _io_reason(getattr(error, "_origin", None) if java_exception is None else java_exception)
    return line if io_reason is None or io_reason in line else f"{line.rstrip('.')}: {io_reason}"


def _io_reason(thrown: JavaObject | None) -> str | None:
    """The message of the last cause of an exception of Java that is an error of a file: a full disk, no right."""
    found = None
    for _ in range(MOST_CAUSES):  # they may go round
        if thrown is None:
            break
        if thrown.getMessage() is not None and thrown.getClass().getName().startswith(IO_PACKAGES):
            found = reason(thrown.getMessage())
        thrown = thrown.getCause()
    return found


def say(line: str) -> None:
    """Print a line at once, also into a pipe.

    The line and its end are one write: `spark-submit` runs Python unbuffered, so that a line of the JVM's log could
    come between two writes.
    """
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(name: str, message: str) -> int:
    """Print the one line of an error, as `say` does. Returns the exit status."""
    sys.stderr.write(f"{name}: error: {reason(message)}\n")
    sys.stderr.flush()
    return 1


def reason(message: str) -> str:
    """An error's message, without what Spark adds to it: the ids of the query, the state, the packages of a class, the
    traceback of a Python worker."""
    raised = JAVA_ERROR.findall(message) or WORKER_ERROR.findall(message)
    line = raised[-1] if raised else first_line(message)
    for wrapping in WRAPPINGS:
        line = wrapping.sub("", line)
    return line
