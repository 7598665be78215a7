"""The process that computes for a broker: `main` is started by the broker's `WorkerProcesses`, and by nobody else.

    stdin     broker -> worker     (function, argument), one job at a time
    stdout    worker -> broker     (kind, value): log lines and reports while it works, then one result or error

Each message is a pickle behind its length (4 bytes, big-endian); both ends are the same program of the same user, so
nothing foreign is ever unpickled. Log lines go to the broker, which writes them among its own.

Invariant: a worker does not outlive its broker. A thread reads stdin, and ends the process when it is closed, also in
the middle of a job: files half written would otherwise change under the next broker.
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
"""Where processor time is short, the event loop comes first."""


class MessageKind(IntEnum):
    """What a worker sends. The value of each, in this order: (logger's name, level, text); anything; the result; an
    OSError; the traceback of a bug.
    """

    LOG = 0
    REPORT = 1
    RESULT = 2
    OS_ERROR = 3
    BUG = 4


def write_message(stream: BinaryIO, message: object) -> None:
    """Send one message. Raises BrokenPipeError when the other end is gone."""
    import pickle  # here and below: a broker that has no work for workers starts without it

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
    """Hands log lines to the broker."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        write_message(self._stream, (MessageKind.LOG, (record.name, record.levelno, record.getMessage())))


def run_job(message: bytes, output: BinaryIO) -> None:
    """Do one job, a message without its length, and send what came of it."""
    import pickle

    def report(value: object) -> None:
        write_message(output, (MessageKind.REPORT, value))

    answer: tuple[MessageKind, object]
    try:
        work, argument = pickle.loads(message)
        answer = (MessageKind.RESULT, work(argument, report))
    except OSError as error:
        answer = (MessageKind.OS_ERROR, error)
    except Exception:  # noqa: BLE001 - a bug, which belongs to the broker's log and must not end the worker
        answer = (MessageKind.BUG, traceback.format_exc())
    write_message(output, answer)


def _read_jobs(stream: BinaryIO, jobs: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            jobs.put(_read_bytes(stream))
    except EOFError:
        os._exit(0)


def main() -> None:
    """Serve until the broker closes stdin."""
    os.nice(NICENESS)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed is no message
    logging.basicConfig(level=logging.INFO, handlers=[_SendingHandler(output)])
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(sys.stdin.buffer, jobs), daemon=True).start()
    try:
        while True:
            run_job(jobs.get(), output)
    except BrokenPipeError:
        os._exit(0)
