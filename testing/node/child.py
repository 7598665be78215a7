"""What a process does that is a broker for tests.

    stdin     test process -> broker     first the settings, then (number, module, question, pickle of the arguments)
    stdout    broker -> test process     (number, is it an error, value or error); number 0: the start

Messages are pickles after their length, as those of worker processes. The end of stdin stops the broker: the test
process has stopped it, or has ended. Log lines of warnings and errors go to stderr.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import sys
import threading
import traceback
from typing import TYPE_CHECKING, BinaryIO, cast

from odradek.storage.disk.worker import read_message, write_message
from odradek.testing.node.node_service import NodeService
from odradek.testing.node.questions.questions import find
from odradek.testing.node.thread_node import new_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STOP_TIMEOUT_S = 10.0
"""After the end of stdin the process ends within this time, whatever the broker does."""


class Child:
    """The broker of this process and the pipe to the test process."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO, on_end: Callable[[], None]) -> None:
        """`on_end` is called in a thread when the test process has closed the pipe."""
        self._on_end = on_end
        self._requests = requests
        self._answers = answers
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the test process closes the pipe."""
        loop = asyncio.get_running_loop()
        try:
            settings = cast("dict[str, str]", read_message(self._requests))
        except EOFError:
            return
        service = NodeService(settings, loop)
        try:
            started = await service.start()
        except Exception as error:  # noqa: BLE001 - it is raised in the test process
            self._answer(0, True, error)
            return
        gc.freeze()  # the command of this process has put off collections until now
        gc.enable()
        self._answer(0, False, started)
        threading.Thread(target=self._read, args=(service, loop), daemon=True).start()
        await service.serve()

    def _read(self, service: NodeService, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while True:
                number, module, name, arguments = cast("tuple[int, str, str, bytes]", read_message(self._requests))
                loop.call_soon_threadsafe(self._begin, service, number, module, name, arguments)
        except EOFError:
            self._on_end()
            loop.call_soon_threadsafe(service.stop_soon)

    def _begin(self, service: NodeService, number: int, module: str, name: str, arguments: bytes) -> None:
        task = asyncio.ensure_future(self._ask(service, number, module, name, arguments))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _ask(self, service: NodeService, number: int, module: str, name: str, arguments: bytes) -> None:
        try:
            value = await service.answer(find(name, module), _unpickled(arguments))
        except Exception as error:  # noqa: BLE001 - it is raised in the test process
            self._answer(number, True, error)
        else:
            self._answer(number, False, value)

    def _answer(self, number: int, is_error: bool, value: object) -> None:
        try:
            if is_error:
                pickle.loads(pickle.dumps(value))  # some errors can be pickled only
            write_message(self._answers, (number, is_error, value))
        except BrokenPipeError:
            return  # the end of stdin stops the broker
        except Exception as error:  # noqa: BLE001 - a value that cannot be pickled
            text = "".join(traceback.format_exception(value)) if isinstance(value, BaseException) else repr(value)
            write_message(self._answers, (number, True, pickle.PicklingError(f"{error}: {text}")))


def _unpickled(arguments: bytes) -> Mapping[str, object]:
    """Raises: UnpicklingError, for example if they have an object of a class that only the test process can import."""
    try:
        return cast("dict[str, object]", pickle.loads(arguments))
    except Exception as error:
        raise pickle.UnpicklingError(f"The process of the broker cannot read the arguments: {error!r}") from error


def _limit_stop() -> None:
    """End the process within the time limit, also if the stop of the broker hangs."""
    timer = threading.Timer(STOP_TIMEOUT_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


def main() -> None:
    """Run a broker until standard input is closed."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that a print does not become a message
    logging.basicConfig(level=logging.WARNING)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(Child(sys.stdin.buffer, answers, _limit_stop).run())
