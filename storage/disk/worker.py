"""The main program of a worker process, which the broker's `WorkerProcesses` starts.

    stdin     broker -> worker     (function, argument), one job at a time
    stdout    worker -> broker     (kind, value): log lines and reports during the work, then one result or error

Each message is a pickle after its length (4 bytes, big-endian). Both ends are the same program of the same user, so
that no foreign data is ever unpickled. The broker writes the log lines to its own log.

Invariant: a worker does not outlive its broker. A thread reads stdin and exits the process when it is closed, even
during a job: otherwise the worker would write files that the next broker uses.
"""

from __future__ import annotations

import logging
import os
import queue
import struct
import sys
import threading
import traceback
from enum import IntEnum
from typing import BinaryIO, Final

LENGTH: Final = struct.Struct(">I")

NICENESS: Final = 5
"""Gives the event loop priority over workers when the processors are busy."""


class MessageKind(IntEnum):
    """The kinds of a worker's messages. Their values, in this order: (logger name, level, text); any; the result; an
    OSError; the traceback of a bug.
    """

    LOG = 0
    REPORT = 1
    RESULT = 2
    OS_ERROR = 3
    BUG = 4


def write_message(stream: BinaryIO, message: object) -> None:
    """Send one message. Raises BrokenPipeError when the other end is gone."""
    import pickle  # here and below: a broker without work for workers starts without this import

    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def read_message(stream: BinaryIO) -> object:
    """Receive one message. Raises EOFError when the other end is gone."""
    import pickle

    return pickle.loads(_read_bytes(stream))


def _read_bytes(stream: BinaryIO) -> bytes:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    length = LENGTH.unpack(head)[0]
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


class _SendingHandler(logging.Handler):
    """Sends log lines to the broker."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        write_message(self._stream, (MessageKind.LOG, (record.name, record.levelno, record.getMessage())))


def run_job(message: bytes, output: BinaryIO) -> None:
    """Run one job (a message without its length) and send its result or error."""
    import pickle

    def report(value: object) -> None:
        write_message(output, (MessageKind.REPORT, value))

    answer: tuple[MessageKind, object]
    try:
        work, argument = pickle.loads(message)
        answer = (MessageKind.RESULT, work(argument, report))
    except OSError as error:
        answer = (MessageKind.OS_ERROR, error)
    except Exception:  # noqa: BLE001 - a bug: it is logged by the broker and must not end the worker
        answer = (MessageKind.BUG, traceback.format_exc())
    write_message(output, answer)


def _read_jobs(stream: BinaryIO, jobs: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            jobs.put(_read_bytes(stream))
    except EOFError:
        os._exit(0)


def main() -> None:
    """Run jobs until the broker closes stdin."""
    os.nice(NICENESS)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that a print does not become a message
    logging.basicConfig(level=logging.INFO, handlers=[_SendingHandler(output)])
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(sys.stdin.buffer, jobs), daemon=True).start()
    try:
        while True:
            run_job(jobs.get(), output)
    except BrokenPipeError:
        os._exit(0)
