"""A broker in a process of its own: the test process and the broker do not share an interpreter.

The process gets questions through its standard input and answers through its standard output; its program is
`odradek.testing.node.child`. It ends when its standard input is closed, so it does not outlive a killed test process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, BinaryIO, Final, cast
from weakref import WeakSet

from odradek.storage.disk.worker import read_message, write_message
from odradek.testing.node.ports import BrokerStopped, Started
from odradek.testing.node.questions.questions import find

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND: Final = (sys.executable, "-c", "import gc; gc.disable(); from odradek.testing.node.child import main; main()")
"""Not `-m`: classes pickled there would belong to the module `__main__`."""

START: Final = 0
"""The number of the answer to the start."""


class ProcessNode:
    """Implements `Node`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count(START + 1)
        self._waiting: dict[int, Future[object]] = {}
        self._stopped: Future[None] = Future()
        self._stopped.set_running_or_notify_cancel()  # a coroutine that waits may be cancelled; the process ends anyway
        self._has_ended = False

    def start(self) -> Future[Started]:
        started: Future[Started] = Future()
        self._waiting[START] = cast("Future[object]", started)
        process = self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
        )
        _NODES.add(self)
        threading.Thread(target=self._receive, args=(process,), name="odradek-broker", daemon=True).start()
        self._send(self._settings)
        return started

    @property
    def process_id(self) -> int | None:
        """None before the start."""
        return None if self._process is None else self._process.pid

    def send_signal(self, number: int) -> None:
        """Does nothing if the process has ended: its id may be another's by now."""
        if self._process is not None:
            self._process.send_signal(number)

    def submit(self, name: str, arguments: Mapping[str, object]) -> Future[object]:
        function = find(name)
        future: Future[object] = Future()
        number = next(self._numbers)
        with self._lock:
            if self._has_ended or self._process is None:
                future.set_exception(BrokerStopped("The broker does not run"))
                return future
            self._waiting[number] = future
        self._send((number, function.__module__, name, dict(arguments)))
        return future

    def stop(self) -> Future[None]:
        process = self._process
        if process is None:
            if not self._stopped.done():
                self._stopped.set_result(None)
        else:
            self._close_input(process)
        return self._stopped

    def _send(self, message: object) -> None:
        assert self._process is not None
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):  # `_receive` fails those who wait
            write_message(cast("BinaryIO", self._process.stdin), message)

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            cast("BinaryIO", process.stdin).close()

    def close_in_fork(self) -> None:
        """A forked process must not hold the pipe open: the broker ends when the last holder has closed it."""
        if self._process is not None and not self._has_ended:
            with contextlib.suppress(OSError, ValueError):  # the pipe may be closed already
                os.close(cast("BinaryIO", self._process.stdin).fileno())

    # In the thread

    def _receive(self, process: subprocess.Popen[bytes]) -> None:
        output = cast("BinaryIO", process.stdout)
        with contextlib.suppress(EOFError, OSError):
            while True:
                number, is_error, value = cast("tuple[int, bool, object]", read_message(output))
                future = self._waiting.pop(number)
                if not future.set_running_or_notify_cancel():
                    continue  # nobody waits for the answer any more
                if not is_error:
                    future.set_result(value)
                else:
                    future.set_exception(cast("BaseException", value))
        output.close()
        self._close_input(process)
        status = process.wait()
        with self._lock:
            self._has_ended = True
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokerStopped(f"The process of the broker has ended with status {status}"))
        self._stopped.set_result(None)


_NODES: Final[WeakSet[ProcessNode]] = WeakSet()


def _close_in_fork() -> None:
    for node in _NODES:
        node.close_in_fork()


os.register_at_fork(after_in_child=_close_in_fork)


def _environment() -> dict[str, str]:
    """The module search path of this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
