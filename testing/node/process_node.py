"""A broker in a process of its own: the test process and the broker do not share an interpreter.

The process gets questions through its standard input and answers through its standard output; a fork server starts it,
and it runs `odradek.testing.node.child`. It ends when its standard input is closed, so it does not outlive a killed
test process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, BinaryIO, Final, cast
from weakref import WeakSet

from odradek.storage.disk.worker import read_message, write_message
from odradek.testing.node.fork_server import FORK_SERVERS
from odradek.testing.node.forks import RUNS_ELSEWHERE, nothing_to_stop, release
from odradek.testing.node.ports import BrokerStopped, Started
from odradek.testing.node.questions.questions import find

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing.node.fork_server import ForkServer

START: Final = 0
"""The number of the answer to the start."""

STDERR: Final = 2
"""The descriptor, which need not be that of `sys.stderr`."""


class ProcessNode:
    """Implements `Node`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._home = os.getpid()
        """The process that has the thread. A fork of it has only this object, and must not touch its locks."""
        self._settings = dict(settings)
        self._requests: BinaryIO | None = None
        self._process_id: int | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count(START + 1)
        self._waiting: dict[int, Future[object]] = {}
        self._stopped: Future[None] = Future()
        self._stopped.set_running_or_notify_cancel()  # a coroutine that waits may be cancelled; the process ends anyway
        self._has_ended = False

    def start(self) -> Future[Started]:
        started: Future[Started] = Future()
        self._waiting[START] = cast("Future[object]", started)
        (its_requests, requests), (answers, its_answers) = os.pipe(), os.pipe()
        self._requests = os.fdopen(requests, "wb")
        _NODES.add(self)
        pipes = (its_requests, its_answers, os.fdopen(answers, "rb"))
        threading.Thread(target=self._run, args=pipes, name="odradek-broker", daemon=True).start()
        self._send(self._settings)
        return started

    @property
    def process_id(self) -> int | None:
        """None before the start."""
        return self._process_id

    def send_signal(self, number: int) -> None:
        """Does nothing if the process has ended: its id may be another's by now."""
        with self._lock:
            if self._process_id is not None and not self._has_ended:
                os.kill(self._process_id, number)

    def submit(self, name: str, arguments: Mapping[str, object]) -> Future[object]:
        if os.getpid() != self._home:
            raise BrokerStopped(RUNS_ELSEWHERE)
        function, packed = find(name), pickle.dumps(dict(arguments))
        future: Future[object] = Future()
        number = next(self._numbers)
        with self._lock:
            if self._has_ended or self._requests is None:
                future.set_exception(BrokerStopped("The broker does not run"))
                return future
            self._waiting[number] = future
        self._send((number, function.__module__, name, packed))
        return future

    def stop(self) -> Future[None]:
        if os.getpid() != self._home:
            return nothing_to_stop()
        if self._requests is not None:
            self._close_requests()
        elif not self._stopped.done():
            self._stopped.set_result(None)
        return self._stopped

    def _send(self, message: object) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):  # `_run` fails those who wait
            write_message(cast("BinaryIO", self._requests), message)

    def _close_requests(self) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            cast("BinaryIO", self._requests).close()

    def close_in_fork(self) -> None:
        """A forked process must not hold the pipe open: the broker ends when the last holder has closed it."""
        if self._requests is not None and not self._has_ended:
            with contextlib.suppress(OSError, ValueError):  # the pipe may be closed already
                release([self._requests.fileno()])

    # In the thread

    def _run(self, its_requests: int, its_answers: int, answers: BinaryIO) -> None:
        """From the fork to the end of the process."""
        with answers:
            try:
                server, self._process_id = FORK_SERVERS.fork((its_requests, its_answers, STDERR))
            except (OSError, EOFError) as error:
                return self._end(f"The process of the broker cannot be started: {error!r}")
            finally:
                os.close(its_requests)
                os.close(its_answers)
            self._receive(answers)
        with self._lock:
            self._has_ended = True  # before the process id may be another's
        self._end(f"The process of the broker has ended with status {_status(server, self._process_id)}")

    def _end(self, why: str) -> None:
        self._close_requests()
        with self._lock:
            self._has_ended = True
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokerStopped(why))
        self._stopped.set_result(None)

    def _receive(self, answers: BinaryIO) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                number, is_error, value = cast("tuple[int, bool, object]", read_message(answers))
                future = self._waiting.pop(number)
                if not future.set_running_or_notify_cancel():
                    continue  # nobody waits for the answer any more
                if not is_error:
                    future.set_result(value)
                else:
                    future.set_exception(cast("BaseException", value))


def _status(server: ForkServer, process_id: int) -> int | None:
    """None if the server was killed, too."""
    try:
        return server.wait(process_id)
    except (OSError, EOFError, ValueError):
        return None


_NODES: Final[WeakSet[ProcessNode]] = WeakSet()


def _close_in_fork() -> None:
    for node in _NODES:
        node.close_in_fork()


os.register_at_fork(after_in_child=_close_in_fork)
