"""A broker in a thread of the test process, with an event loop of its own.

So code of a test that blocks does not hold the broker up. Nothing of the process changes: no signal handler, no
threshold of the garbage collector, no logging configuration. Only the logger `odradek` has a handler while the broker
runs, which keeps warnings for the report of a failed test; and collections rest during the first start
(`testing/first_imports.py`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from odradek.testing.node.forks import RUNS_ELSEWHERE, nothing_to_stop
from odradek.testing.node.loop_calls import LoopCalls
from odradek.testing.node.node_service import NodeService
from odradek.testing.node.ports import BrokerStopped, Started
from odradek.testing.node.questions.questions import find

if TYPE_CHECKING:
    from collections.abc import Mapping


EXIT_TIMEOUT_S: Final = 5.0
"""How long the end of the process waits for a broker that was not stopped."""


class ThreadNode:
    """Implements `Node`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._home = os.getpid()
        """The process that has the thread. A fork of it has only this object, and must not touch its loop or locks."""
        self._loop = new_event_loop()
        self._service = NodeService(settings, self._loop)
        self._calls = LoopCalls(self._loop)
        self._started: Future[Started] = Future()
        self._stopped: Future[None] = Future()
        for future in (self._started, self._stopped):
            future.set_running_or_notify_cancel()  # a coroutine that waits may be cancelled; the broker is stopped then
        # A daemon: a test process that does not stop its broker must still be able to exit.
        self._thread = threading.Thread(target=self._run, name="odradek-broker", daemon=True)

    def start(self) -> Future[Started]:
        atexit.register(self._stop_at_exit)
        self._thread.start()
        return self._started

    def submit(self, name: str, arguments: Mapping[str, object]) -> Future[object]:
        if os.getpid() != self._home:
            raise BrokerStopped(RUNS_ELSEWHERE)
        return self._calls.submit(partial(self._service.answer, find(name), arguments))

    def stop(self) -> Future[None]:
        if os.getpid() != self._home:
            return nothing_to_stop()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the start has failed
            self._loop.call_soon_threadsafe(self._service.stop_soon)
        return self._stopped

    def _stop_at_exit(self) -> None:
        """Remove the data also if the test process ends without a stop."""
        with contextlib.suppress(TimeoutError):
            self.stop().result(EXIT_TIMEOUT_S)

    # In the thread

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - a start or a stop that failed: its future has the error
            self._fail(error)
        else:
            self._stopped.set_result(None)
        finally:
            atexit.unregister(self._stop_at_exit)

    async def _serve(self) -> None:
        try:
            self._started.set_result(await self._service.start())
            await self._service.serve()
        finally:
            self._calls.close(self._service.why_stopped)

    def _fail(self, error: BaseException) -> None:
        if not self._started.done():
            self._stopped.set_result(None)
            self._started.set_exception(error)
        else:
            self._stopped.set_exception(error)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, as in `odradek serve`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return cast("asyncio.AbstractEventLoop", uvloop.new_event_loop())
