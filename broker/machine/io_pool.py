"""A small thread pool for calls that wait for a disk and release the GIL: fsync, unlink, reads of cold pages.

CPU-bound work does not belong here: its thread would take the GIL from the event loop for milliseconds at a time.
Results return through `call_soon_threadsafe`, so `done` runs on the loop like everything else that changes state.

Implements `storage.disk.ports.IoPool`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.ports import IoPool

T = TypeVar("T")

logger = logging.getLogger(__name__)

THREADS: Final = 4
"""Enough to keep a disk busy; the work itself takes no processor time."""

HANDLER_CALLS_MAX: Final = 2
"""Calls of operators' classes and of SASL clients, which may wait for other services, in threads at the same time. The
other threads are for the disk, and one for each listener that fetches a JWKS now and then."""


class ThreadIoPool:
    """Threads are started when there is work for them, so that a start-up without cold reads starts none.

    `Thread.start` returns when the new thread runs. Where it has to wait for a core, the event loop waited with it, for
    350 ms on a busy machine. So the loop starts only the first thread. A thread that takes up a job, and leaves no
    other one that waits for the next job, starts that one. Where the system allows no more threads, those that there
    are do the work.
    """

    __slots__ = ("_ended", "_idle", "_is_closed", "_lock", "_loop", "_queue", "_threads", "_threads_max", "pending")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._threads_max = THREADS
        """Less, once the system has refused a thread."""
        self._idle = 0
        """Threads that wait for a job."""
        self._lock = threading.Lock()
        """For the threads and the number of idle ones."""
        self._is_closed = False
        self.pending = 0
        """Submitted and not done."""
        self._ended: asyncio.Event | None = None
        """Set when a job ends; made when somebody waits for that."""

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        """Run `work` in a thread, then `done` with its result, or the OSError it raised, on the loop.

        After `close` nothing is run: a late `done` may submit more work, and its thread would never end.
        """
        if self._is_closed:
            return

        def run() -> None:
            result: T | OSError
            try:
                result = work()
            except OSError as error:
                result = error
            except BaseException as error:  # noqa: BLE001 - a bug: the loop's exception handler gets it
                self._loop.call_soon_threadsafe(self._report, error)
                return
            self._loop.call_soon_threadsafe(finish, result)

        def finish(result: T | OSError) -> None:
            self.pending -= 1
            if self._ended is not None:
                self._ended.set()
            done(result)

        self.pending += 1
        self._queue.put(run)
        if not self._threads:
            with self._lock:
                self._start_thread()

    async def settled(self) -> None:
        """Wait until nothing is pending, also of what the results submit."""
        if self._ended is None:
            self._ended = asyncio.Event()
        while self.pending:
            self._ended.clear()
            await self._ended.wait()

    def close(self) -> None:
        """Let the threads finish what was submitted and wait for them. Results that come after this are dropped."""
        with self._lock:
            self._is_closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _start_thread(self) -> None:
        """Raises: RuntimeError if the system allows no more threads."""
        thread = threading.Thread(target=self._work, name=f"io-{len(self._threads)}", daemon=True)
        thread.start()  # it waits for the lock before it counts itself out
        self._threads.append(thread)
        self._idle += 1

    def _next_job(self) -> Callable[[], None] | None:
        """Wait for a job; if all threads are busy now, start another one that waits for the next."""
        job = self._queue.get()
        with self._lock:
            self._idle -= 1
            if not self._idle and not self._is_closed and len(self._threads) < self._threads_max:
                try:
                    self._start_thread()
                except RuntimeError as error:
                    self._threads_max = len(self._threads)
                    logger.warning("The I/O pool stays at %d threads: %s", self._threads_max, error)
        return job

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            try:
                job()
            except RuntimeError:
                # The loop is closed: nothing waits for the result.
                logger.debug("The result of an I/O job came after the event loop was closed")
            with self._lock:
                self._idle += 1

    def _report(self, error: BaseException) -> None:
        self.pending -= 1
        if self._ended is not None:
            self._ended.set()
        self._loop.call_exception_handler({"message": "Error in an I/O job", "exception": error})


async def run_in_pool(io_pool: IoPool, work: Callable[[], T], slots: asyncio.Semaphore | None = None) -> T:
    """Run `work` in a thread and wait for its end. Raises: what `work` raises.

    `slots`: one is taken until the thread is free, also when the one that waits is cancelled before.
    """
    if slots is not None:
        await slots.acquire()
    ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def run() -> Callable[[], None]:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            return partial(ended.set_exception, error)
        return partial(ended.set_result, result)

    def done(end: Callable[[], None] | OSError) -> None:
        assert not isinstance(end, OSError), "it is returned"
        if slots is not None:
            slots.release()
        if not ended.done():  # else the one that waits was cancelled
            end()

    io_pool.submit(run, done)
    return await ended
