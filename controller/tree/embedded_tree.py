"""The metadata tree of a single node: SQLite in a thread of its own, with ZooKeeper's contract.

`TreeDatabase` has the thread. It applies all queued batches in one transaction, commits, and then passes watch events
and results to the loop: first the events, then the results, so that a watcher is called before its client can read the
change. The thread also has the watch tables, so that reading a node and setting its watch are one step.

`EmbeddedTree` is one client of a database, with its session. A broker has one; a simulated cluster opens one per
broker over the same database, and the brokers see each other's ephemeral nodes as in ZooKeeper.

On a full disk, or with a quota that is used up, writes fail with StorageFull: the transaction is rolled back, and the
watches it has fired are set again. After any other failure of SQLite (an I/O error) the database stops: every waiting
and later batch fails with ConnectionLoss, and `on_failure` is called once, on the loop, so that the broker can stop
cleanly.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar, cast

from odradek.controller.tree.metadata_tree import (
    ConnectionLoss,
    MetadataTree,
    Operation,
    SessionExpired,
    SessionListener,
    StorageFull,
    TreeError,
    Watcher,
    WatchEvent,
)
from odradek.controller.tree.tree_watches import TreeWatches
from odradek.storage.disk.disk_space import is_no_space

if TYPE_CHECKING:
    from odradek.controller.tree.tree_store import TreeStore
    from odradek.timer.clock import Clock

METADATA_FILE: Final = "odradek-metadata.db"
"""The file name of the database in `metadata.dir`."""

BATCHES_PER_TRANSACTION_MAX: Final = 64

PROBE_BYTES: Final = 64 * 1024
"""More than the last write that SQLite tried, of one page: that one did not fit."""

logger = logging.getLogger("odradek.controller")

ResultT = TypeVar("ResultT")

_Delivery = tuple["EmbeddedTree", Watcher, WatchEvent]
_Settlement = tuple["asyncio.Future[object]", object]


class _Batch(NamedTuple):
    """Operations of one session, or the start or end of a session."""

    tree: EmbeddedTree
    future: asyncio.Future[object]
    operations: Sequence[Operation[object]] = ()
    starts_session: bool = False
    ends_session: bool = False


class TreeDatabase:
    """The SQLite file and the thread that reads and writes it."""

    def __init__(self, path: str, clock: Clock, on_failure: Callable[[BaseException], None]) -> None:
        self._path = path
        self._clock = clock
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Batch | None] = SimpleQueue()
        self._watches: TreeWatches[EmbeddedTree] = TreeWatches()
        self._sessions: dict[EmbeddedTree, int] = {}
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._failure: BaseException | None = None
        self._is_closing = False
        # A daemon, because the interpreter must not wait for it at exit: every returned result is on disk.
        self._thread = threading.Thread(target=self._work, name="metadata-tree", daemon=True)

    @classmethod
    async def open(
        cls, path: str, clock: Clock, on_failure: Callable[[BaseException], None] = lambda error: None
    ) -> TreeDatabase:
        """Open the database, or create it. Raises ConnectionLoss if that fails."""
        database = cls(path, clock, on_failure)
        database._thread.start()
        await database._opened
        return database

    async def connect(self) -> EmbeddedTree:
        """A new client with its own session."""
        tree = EmbeddedTree(self)
        await tree._start_session()
        return tree

    async def close(self) -> None:
        """Apply the queued batches and close the file. Open sessions end, as after a crash of the process."""
        if not self._is_closing:
            self._is_closing = True
            self._queue.put(None)
        await self._closed

    def _put(self, batch: _Batch) -> None:
        if self._is_closing or self._failure is not None:
            batch.future.set_exception(ConnectionLoss("", f"the metadata tree is closed: {self._failure}"))
        else:
            self._queue.put(batch)

    # The methods above run on the loop. Those below run in the thread, except _deliver, _settle, _fail_to_open, _fail.

    def _work(self) -> None:
        import sqlite3

        from odradek.controller.tree.private_file import make_private
        from odradek.controller.tree.tree_store import TreeStore

        try:
            make_private(self._path)
            store = TreeStore(self._path, self._clock)
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:  # the last two: a bad path or bad content
            self._call_loop(self._fail_to_open, error)
            return
        self._call_loop(self._settle, self._opened, None)
        batches: list[_Batch] = []
        try:
            while batches := self._next_batches():
                deliveries, settlements = self._commit(store, batches)
                self._call_loop(self._deliver, deliveries, settlements)
            store.close()
        except Exception as error:
            # SQLite failed, or there is a bug in the code above: every waiting batch must get an error.
            logger.error("The metadata tree %s failed; it takes no more operations", self._path, exc_info=error)
            self._call_loop(self._fail, error, batches)
        self._call_loop(self._settle, self._closed, None)

    def _next_batches(self) -> list[_Batch]:
        """The queued batches, at least one and up to the limit; empty when the database must close."""
        first = self._queue.get()
        batches: list[_Batch] = []
        try:
            while first is not None and len(batches) < BATCHES_PER_TRANSACTION_MAX:
                batches.append(first)
                first = self._queue.get_nowait()
        except Empty:
            return batches
        if first is None and batches:
            self._queue.put(None)
        elif first is not None:
            batches.append(first)
        return batches

    def _commit(self, store: TreeStore, batches: list[_Batch]) -> tuple[list[_Delivery], list[_Settlement]]:
        """Apply all batches in one transaction; if there is no space for it, one by one, so that reads succeed."""
        done = self._try_to_commit(store, batches)
        if done is not None:
            return done
        deliveries: list[_Delivery] = []
        settlements: list[_Settlement] = []
        for batch in batches:
            alone = self._try_to_commit(store, [batch])
            if alone is not None:
                deliveries += alone[0]
                settlements += alone[1]
            elif batch.ends_session:
                # The session ends nevertheless: its ephemeral nodes are deleted when the file is opened next.
                self._sessions.pop(batch.tree, None)
                settlements.append((batch.future, None))
            else:
                settlements.append((batch.future, StorageFull("", "there is no space for the metadata tree")))
        return deliveries, settlements

    def _try_to_commit(
        self, store: TreeStore, batches: list[_Batch]
    ) -> tuple[list[_Delivery], list[_Settlement]] | None:
        """Apply batches in one transaction. None if there is no space; the transaction is rolled back then."""
        import sqlite3

        sessions = dict(self._sessions)
        deliveries: list[_Delivery] = []
        try:
            store.begin()
            settlements = [(batch.future, self._apply(store, batch, deliveries)) for batch in batches]
            store.commit()
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
            is_full = code == sqlite3.SQLITE_FULL or (_is_io_error(code) and _is_without_space(self._path))
            if not is_full:
                raise
            logger.error("No space to write the metadata tree %s. Free space on its file system", self._path)
            store.rollback()
            self._watches.rollback()
            self._sessions = sessions
            return None
        self._watches.commit()
        return deliveries, settlements

    def _apply(self, store: TreeStore, batch: _Batch, deliveries: list[_Delivery]) -> object:
        tree = batch.tree
        if batch.starts_session:
            session_id = store.start_session()
            self._sessions[tree] = session_id
            return session_id
        current = self._sessions.get(tree)
        if current is None:
            return SessionExpired("", "the session has ended")
        if batch.ends_session:
            del self._sessions[tree]
            self._watches.forget(tree)
            store.end_session(current)
            self._fire(store, deliveries)
            return None
        results: list[object] = []
        for operation in batch.operations:
            error: TreeError | None = None
            try:
                results.append(store.apply(operation, current))
            except TreeError as refused:
                error = refused.with_traceback(None)  # of this frame, in which the error is: a cycle
                results.append(error)
            self._fire(store, deliveries)
            self._watches.watch(tree, operation, error)
        return results

    def _fire(self, store: TreeStore, deliveries: list[_Delivery]) -> None:
        if store.changes:
            for change in store.take_changes():
                deliveries.extend(self._watches.fire(change))

    def _call_loop(self, function: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    # The methods below run on the loop.

    def _deliver(self, deliveries: list[_Delivery], settlements: list[_Settlement]) -> None:
        # One callback for each, so that an exception of one watcher (which the loop logs) does not stop the others.
        for tree, watcher, event in deliveries:
            if not tree.is_closed:
                self._loop.call_soon(watcher, event)
        for future, result in settlements:
            self._loop.call_soon(self._settle, future, result)

    @staticmethod
    def _settle(future: asyncio.Future[object], result: object) -> None:
        if future.done():
            return
        if isinstance(result, TreeError):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _fail_to_open(self, error: BaseException) -> None:
        self._failure = error
        is_locked = getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY"
        reason = "it is in use by a running broker" if is_locked else error
        loss = ConnectionLoss("", f"cannot open the metadata tree {self._path}: {reason}")
        self._settle(cast("asyncio.Future[object]", self._opened), loss)
        self._settle(cast("asyncio.Future[object]", self._closed), None)

    def _fail(self, error: BaseException, batches: list[_Batch]) -> None:
        self._failure = error
        waiting = list(batches)
        try:
            while (batch := self._queue.get_nowait()) is not None:
                waiting.append(batch)
        except Empty:
            pass
        for batch in waiting:
            self._settle(batch.future, ConnectionLoss("", f"the metadata tree failed: {error}"))
        self._on_failure(error)


def _is_io_error(code: int) -> bool:
    import sqlite3

    return code & 0xFF == sqlite3.SQLITE_IOERR  # the other bits say which call has failed


def _is_without_space(path: str) -> bool:
    """Whether a file beside the database cannot take a few pages.

    For SQLite, a quota that is used up (EDQUOT) is an I/O error like that of a broken disk.
    """
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(path))) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return is_no_space(error)
    return False


class EmbeddedTree(MetadataTree):
    """One session over a `TreeDatabase`; implements MetadataTree."""

    def __init__(self, database: TreeDatabase, *, is_alone: bool = False) -> None:
        self._database = database
        self._is_alone = is_alone
        self._session_id = 0
        self._listeners: list[SessionListener] = []
        self.is_closed = False

    @classmethod
    async def open(cls, path: str, clock: Clock, on_failure: Callable[[BaseException], None]) -> Self:
        """Open a database with one client, which closes it. Raises ConnectionLoss if it cannot be opened."""
        tree = cls(await TreeDatabase.open(path, clock, on_failure), is_alone=True)
        await tree._start_session()
        return tree

    @property
    def session_id(self) -> int:
        return self._session_id

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        if not operations:
            return []
        results = await self._request(operations=operations)
        return cast("list[ResultT | TreeError]", results)

    async def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            await (self._database.close() if self._is_alone else self._request(ends_session=True))

    async def expire_session(self) -> None:
        """Expire the session as ZooKeeper does after a session timeout; for tests and simulations."""
        await self._request(ends_session=True)
        for listener in self._listeners:
            await listener.session_lost()
        await self._start_session()
        for listener in self._listeners:
            listener.session_started()

    async def _start_session(self) -> None:
        self._session_id = cast("int", await self._request(starts_session=True))

    async def _request(
        self, *, operations: Sequence[Operation[object]] = (), starts_session: bool = False, ends_session: bool = False
    ) -> object:
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._database._put(
            _Batch(
                tree=self,
                future=future,
                operations=operations,
                starts_session=starts_session,
                ends_session=ends_session,
            )
        )
        return await future
