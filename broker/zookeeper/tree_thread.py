"""The thread that applies requests to the tree: many in one transaction, their answers after its commit.

While a transaction is written to the disk, requests queue up, and the next transaction takes all of them. So an
answer means that the change is durable, and many clients share one fsync.

ZooKeeper: SyncRequestProcessor.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeAlias

from odradek.broker.zookeeper.requests.request_processor import RequestProcessor
from odradek.broker.zookeeper.tree.data_tree import CONFIG_ACL
from odradek.controller.tree.service_store import ServiceStore, StoredSession, StoreUnavailable, open_store
from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

WORK_PER_TRANSACTION_MAX: Final = 256
OUTPUT_BYTES_MAX: Final = 16 << 20
"""A transaction ends when its answers are that long."""

OUTPUTS_MAX: Final = 2
"""The transactions whose answers wait for the event loop. The next one is not begun before."""

CALLS_A_TURN: Final = 1_000
"""Calls of one output in a turn of the event loop: one request can cause 170,000 events of watches."""

Work: TypeAlias = Callable[[RequestProcessor], None]


class TreeThread:
    """See the module. All methods are called on the event loop."""

    def __init__(
        self, path: str, clock: Clock, session_ended: Callable[[int], None], failed: Callable[[Exception], None]
    ) -> None:
        """`failed`: called once if the database fails; no request is answered after it."""
        self._path = path
        self._clock = clock
        self._session_ended = session_ended
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._unsent = threading.Semaphore(OUTPUTS_MAX)
        self._outputs: deque[deque[Callable[[], None]]] = deque()
        """What the event loop has got from the thread and has not run."""
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._opened: asyncio.Future[list[StoredSession]] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        # A daemon, because the interpreter must not wait for it at exit: what was answered is on the disk.
        self._thread = threading.Thread(target=self._work, name="zookeeper-tree", daemon=True)

    async def open(self) -> list[StoredSession]:
        """Open or create the database; returns the sessions that it has. Raises StoreUnavailable."""
        self._thread.start()
        return await self._opened

    def submit(self, work: Work) -> None:
        self._queue.put(work)

    async def ask(self, question: Callable[[RequestProcessor], str]) -> str:
        """An answer from the thread, after everything that was submitted before. Raises StoreUnavailable at its end."""
        answered: asyncio.Future[str] = self._loop.create_future()

        def work(processor: RequestProcessor) -> None:
            answer = question(processor)
            processor.output.append(lambda: None if answered.done() else answered.set_result(answer))

        self.submit(work)
        both: set[asyncio.Future[Any]] = {answered, self._closed}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise StoreUnavailable("the thread of the tree has ended")
        return answered.result()

    async def close(self) -> None:
        """Apply what was submitted, and close the database."""
        self._queue.put(None)
        await self._closed
        self._thread.join()  # that was the last thing it did

    # The methods below run in the thread.

    def _work(self) -> None:
        try:
            store = open_store(self._path, self._clock, CONFIG_ACL)
        except StoreUnavailable as error:
            self._call(self._opened.set_exception, error)
            return
        sessions = store.sessions()
        processor = RequestProcessor(store, self._session_ended)
        self._call(self._opened.set_result, sessions)
        try:
            while batch := self._next_batch():
                self._commit(store, processor, batch)
            store.close()
        except Exception as error:
            # SQLite failed, or there is a bug: what was not answered may not be on the disk.
            logger.critical("The tree %s failed; the service stops", self._path, exc_info=error)
            self._put([partial(self._failed, error)])
        self._put([partial(self._closed.set_result, None)])

    def _commit(self, store: ServiceStore, processor: RequestProcessor, batch: list[Work]) -> None:
        works = deque(batch)
        while works:
            store.begin()
            while works and processor.output_bytes <= OUTPUT_BYTES_MAX:
                works.popleft()(processor)
            store.commit()
            if output := processor.take_output():
                self._put(output)

    def _next_batch(self) -> list[Work]:
        """What was submitted, at least one and up to the limit; empty when the database must close."""
        first = self._queue.get()
        batch: list[Work] = []
        try:
            while first is not None:
                batch.append(first)
                if len(batch) == WORK_PER_TRANSACTION_MAX:
                    return batch
                first = self._queue.get_nowait()
        except Empty:
            return batch
        if batch:
            self._queue.put(None)
        return batch

    def _put(self, output: list[Callable[[], None]]) -> None:
        """Have the event loop run the output after what came before."""
        self._unsent.acquire()
        self._call(self._take, deque(output))

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    # On the event loop

    def _take(self, output: deque[Callable[[], None]]) -> None:
        self._outputs.append(output)
        if len(self._outputs) == 1:
            self._run_some()

    def _run_some(self) -> None:
        output = self._outputs[0]
        try:
            for _ in range(min(CALLS_A_TURN, len(output))):
                output.popleft()()
        finally:  # a call that fails does not keep the others from being run
            if not output:
                self._outputs.popleft()
                self._unsent.release()
            if self._outputs:
                self._loop.call_soon(self._run_some)
