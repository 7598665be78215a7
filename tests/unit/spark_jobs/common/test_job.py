"""The skeleton of the jobs, with a session that is none: the order of its steps, its status, its one line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, StreamingQueryException

from spark_jobs.common import job as job_module
from spark_jobs.common.connector import SetupError
from spark_jobs.common.job import JobError, RunOptions, fail, reason, run_job, say
from spark_jobs.kafka_log.errors import warn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Run = Callable[..., int]


class FakeSession:
    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def stop(self) -> None:
        self._steps.append("stop")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens in a run, with Spark and the signal handlers replaced."""
    happened: list[str] = []

    def session(name: str, **options: object) -> FakeSession:
        happened.append(f"session {name} {options}")
        return FakeSession(happened)

    monkeypatch.setattr(job_module, "spark_session", session)
    monkeypatch.setattr(job_module.StopRequest, "install", lambda _: happened.append("signals"))
    return happened


def test_a_run_is_checked_before_spark_starts(steps: list[str]) -> None:
    options = RunOptions(master="local[1]", conf=(("a", "b"),), log_level="WARN")
    status = run_job("job", options, lambda *_: steps.append("job"), check=lambda: steps.append("check"))
    assert status == 0
    session = "session job {'master': 'local[1]', 'conf': {'a': 'b'}, 'log_level': 'WARN'}"
    assert steps == ["signals", "check", session, "signals", "job", "stop"]


def test_a_job_may_have_a_status_of_its_own(steps: list[str]) -> None:
    assert run_job("job", RunOptions(), lambda *_: 1) == 1
    assert steps[-1] == "stop"


def test_a_check_that_fails_starts_nothing(steps: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def check() -> None:
        raise JobError("there is no folder x")

    assert run_job("job", RunOptions(), lambda *_: None, check=check) == 1
    assert capsys.readouterr().err == "job: error: there is no folder x\n"
    assert steps == ["signals"]


def test_spark_that_does_not_start_is_one_line(
    steps: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        raise SetupError("no Spark")

    monkeypatch.setattr(job_module, "spark_session", no_spark)
    assert run_job("job", RunOptions(), lambda *_: None) == 1
    assert capsys.readouterr().err == "job: error: no Spark\n"


class FakeJavaException:
    _target_id = "o1"

    class _gateway_client:
        """Py4JJavaError keeps it."""

    def __init__(self, name: str, message: str | None, cause: FakeJavaException | None = None) -> None:
        self.name = name
        self.message = message
        self.cause = cause

    def toString(self) -> str:
        return f"{self.name}: {self.message}\n\tat x"

    def getMessage(self) -> str | None:
        return self.message

    def getClass(self) -> SimpleNamespace:
        return SimpleNamespace(getName=lambda: self.name)

    def getCause(self) -> FakeJavaException | None:
        return self.cause


FULL = FakeJavaException("java.io.IOException", "No space left on device")
WRITE = "[TASK_WRITE_FAILED] Task failed while writing rows to file:/a."
LOST = (
    "Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 2.0 (TID 4) (localhost executor driver): "
)


def captured(message: str, origin: FakeJavaException) -> Exception:
    """As PySpark makes it of an exception that it has a class for."""
    error = StreamingQueryException(message)
    error._origin = origin
    return error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (JobError("the topic is not there\nsecond line"), "the topic is not there"),
        (AnalysisException("[X] wrong"), "[X] wrong"),
        (Py4JJavaError("m", FakeJavaException("java.io.IOException", "Mkdirs failed")), "IOException: Mkdirs failed"),
        (
            Py4JJavaError("m", FakeJavaException("org.apache.spark.SparkException", LOST + FULL.toString(), FULL)),
            "IOException: No space left on device",
        ),
        (
            Py4JJavaError("m", FakeJavaException("org.apache.spark.SparkException", f"{WRITE} SQLSTATE: 58030", FULL)),
            "SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/a: No space left on device",
        ),
        (
            captured(
                f"[STREAM_FAILED] Query [id = a] terminated with exception: {WRITE} SQLSTATE: 58030 SQLSTATE: XXKST",
                FakeJavaException("a.StreamingQueryException", "x", FakeJavaException("a.SparkException", WRITE, FULL)),
            ),
            "[TASK_WRITE_FAILED] Task failed while writing rows to file:/a: No space left on device",
        ),
        (
            captured("[X] wrong", FakeJavaException("a.B", "x", FakeJavaException("java.io.EOFException", None))),
            "[X] wrong",
        ),
    ],
)
def test_an_error_of_a_job_is_one_line(
    steps: list[str], capsys: pytest.CaptureFixture[str], error: Exception, line: str
) -> None:
    def job(*_: object) -> None:
        raise error

    assert run_job("job", RunOptions(), job) == 1
    assert capsys.readouterr().err == f"job: error: {line}\n"
    assert steps[-1] == "stop"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: org.apache.kafka.common.errors."
            "UnknownTopicOrPartitionException: This server does not host it. SQLSTATE: XXKST\n\tat x",
            "UnknownTopicOrPartitionException: This server does not host it.",
        ),
        ("the output o holds files", "the output o holds files"),
        (
            "Job aborted due to stage failure: PythonException: Traceback (most recent call last):\n  File a\n    b()\n"
            "spark_jobs.common.job.JobError: records for a:0 were not written\n\n\tat org.apache\n",
            "records for a:0 were not written",
        ),
        (
            "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
            "  File a\n    b()\npy4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, "
            "most recent failure: Lost task 0.0 in stage 1.0 (TID 3) (h executor driver): org.apache.kafka.common."
            "errors.TopicAuthorizationException: Not authorized to access topics: [t]\n\n\tat a\n",
            "TopicAuthorizationException: Not authorized to access topics: [t]",
        ),
        ("\n[PARSE_SYNTAX_ERROR] Syntax error. SQLSTATE: 42601 (line 1)", None),
        ("", "no reason given"),
    ],
)
def test_a_reason_is_one_line_without_its_wrapping(message: str, expected: str | None) -> None:
    assert reason(message) == (expected if expected is not None else message.strip())


def test_an_error_of_a_python_worker_is_its_line_below_the_traceback() -> None:
    message = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):\n"
        '  File "source.py", line 47, in schema\n'
        "    list_directory(log_dir)\n"
        "spark_jobs.kafka_log.errors.KafkaLogError: there is no /nope on this machine\n"
        " SQLSTATE: 38000"
    )
    assert reason(message) == "there is no /nope on this machine"


class Writes(io.RawIOBase):
    """A file that keeps what each write brought."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        self.written.append(bytes(data))
        return len(self.written[-1])


@pytest.mark.parametrize(
    ("tell", "stream", "text"),
    [
        (lambda: say("done: 5 records"), "stdout", b"done: 5 records\n"),
        (lambda: fail("archive_topic", "no such topic"), "stderr", b"archive_topic: error: no such topic\n"),
        (lambda: warn("offsets 0 to 5 are gone"), "stderr", b"kafka_log: warning: offsets 0 to 5 are gone\n"),
    ],
    ids=["say", "fail", "warn"],
)
def test_a_line_is_one_write_where_python_does_not_buffer(
    tell: Callable[[], object], stream: str, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a line of the JVM's log may come between it and its end."""
    file = Writes()
    monkeypatch.setattr(sys, stream, io.TextIOWrapper(file, write_through=True))
    tell()
    assert file.written == [text]
