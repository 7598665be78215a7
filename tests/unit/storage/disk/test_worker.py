from __future__ import annotations

import io
import logging
import pickle
from collections.abc import Callable

import pytest

from odradek.storage.disk import worker
from odradek.storage.disk.worker import MessageKind, read_message, run_job, write_message


def double(argument: object, report: Callable[[object], None]) -> object:
    report("half way")
    return [argument, argument]


def fail(argument: object, report: Callable[[object], None]) -> object:
    raise OSError(28, "No space left on device")


def stumble(argument: object, report: Callable[[object], None]) -> object:
    raise KeyError(argument)


def messages(output: io.BytesIO) -> list[tuple[MessageKind, object]]:
    output.seek(0)
    found = []
    while output.tell() < len(output.getvalue()):
        found.append(read_message(output))
    return found  # type: ignore[return-value]


def test_messages_come_back_as_they_were_sent() -> None:
    stream = io.BytesIO()
    write_message(stream, {"a": [1, b"2"]})
    write_message(stream, None)
    stream.seek(0)
    assert [read_message(stream), read_message(stream)] == [{"a": [1, b"2"]}, None]


@pytest.mark.parametrize("length", [0, 2, 4, 9])
def test_a_stream_that_ends_is_the_end(length: int) -> None:
    stream = io.BytesIO()
    write_message(stream, "a message")
    with pytest.raises(EOFError):
        read_message(io.BytesIO(stream.getvalue()[:length]))


def test_a_job_sends_its_reports_and_then_its_result() -> None:
    output = io.BytesIO()
    run_job(pickle.dumps((double, 7)), output)
    assert messages(output) == [(MessageKind.REPORT, "half way"), (MessageKind.RESULT, [7, 7])]


def test_a_disk_error_is_a_result() -> None:
    output = io.BytesIO()
    run_job(pickle.dumps((fail, None)), output)
    [(kind, error)] = messages(output)
    assert kind is MessageKind.OS_ERROR
    assert isinstance(error, OSError)
    assert error.errno == 28


def test_a_bug_is_sent_with_its_traceback() -> None:
    output = io.BytesIO()
    run_job(pickle.dumps((stumble, "key")), output)
    [(kind, text)] = messages(output)
    assert kind is MessageKind.BUG
    assert "in stumble" in str(text)


def test_log_lines_are_sent() -> None:
    output = io.BytesIO()
    handler = worker._SendingHandler(output)
    handler.handle(logging.LogRecord("odradek.storage", logging.WARNING, __file__, 1, "%d lines", (3,), None))
    assert messages(output) == [(MessageKind.LOG, ("odradek.storage", logging.WARNING, "3 lines"))]


def test_a_job_that_cannot_be_read_is_a_bug_too() -> None:
    output = io.BytesIO()
    run_job(b"no pickle", output)
    [(kind, _)] = messages(output)
    assert kind is MessageKind.BUG
