from __future__ import annotations

import asyncio
import errno
import os
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.controller.tree import tree_store
from odradek.controller.tree.embedded_tree import PROBE_BYTES, EmbeddedTree, TreeDatabase
from odradek.controller.tree.metadata_tree import (
    BadArguments,
    ConnectionLoss,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    MetadataTree,
    Multi,
    Operation,
    SetData,
    StorageFull,
    WatchEvent,
)
from odradek.controller.tree.tree_store import DATA_BYTES_MAX, TreeStore
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.unit.controller.metadata_tree_contract import Clients, MetadataTreeContract
from tests.unit.controller.tree_model import TreeModel, outcome


class _EmbeddedClients:
    root = "/contract"

    def __init__(self, database: TreeDatabase) -> None:
        self._database = database

    async def connect(self) -> MetadataTree:
        return await self._database.connect()

    async def expire(self, tree: MetadataTree) -> None:
        assert isinstance(tree, EmbeddedTree)
        await tree.expire_session()

    async def quiesce(self) -> None:
        await asyncio.sleep(0)


@asynccontextmanager
async def opened(path: Path | str, clock: ManualClock | None = None) -> AsyncIterator[TreeDatabase]:
    database = await TreeDatabase.open(str(path), clock or ManualClock(1000))
    try:
        yield database
    finally:
        await database.close()


class TestEmbeddedTreeContract(MetadataTreeContract):
    @asynccontextmanager
    async def cluster(self, tmp_path: Path) -> AsyncIterator[Clients]:
        async with opened(":memory:") as database:
            tree = await database.connect()
            await tree.run(Create(_EmbeddedClients.root))
            yield _EmbeddedClients(database)


@async_test
async def test_a_restart_keeps_nodes_drops_ephemerals_and_continues_all_counters(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    async with opened(path) as database:
        tree = await database.connect()
        session_id = tree.session_id
        await tree.submit([Create("/a", b"kept"), Create("/e", b"", CreateMode.EPHEMERAL)])
        last = await tree.run(SetData("/a", b"changed"))
        # No close of the session: the process dies.
    async with opened(path) as database:
        tree = await database.connect()
        assert tree.session_id > session_id
        kept = await tree.run(GetData("/a"))
        assert (kept.data, kept.stat) == (b"changed", last)
        assert await tree.run(Exists("/e")) is None
        created = await tree.run(Create("/b"))
        assert created.stat.czxid > last.mzxid


@async_test
async def test_a_refused_operation_takes_no_zxid(tmp_path: Path) -> None:
    async with opened(":memory:") as database:
        tree = await database.connect()
        first = await tree.run(Create("/a"))
        await tree.submit([Create("/a"), Multi((Create("/b"), Create("/a"))), SetData("/a", b"", 7)])
        second = await tree.run(Create("/b"))
        assert second.stat.czxid == first.stat.czxid + 1


@async_test
async def test_times_come_from_the_clock() -> None:
    clock = ManualClock(5000)
    async with opened(":memory:", clock) as database:
        tree = await database.connect()
        created = await tree.run(Create("/a"))
        clock.advance(70)
        changed = await tree.run(SetData("/a", b"x"))
    assert (created.stat.ctime_ms, created.stat.mtime_ms) == (5000, 5000)
    assert (changed.ctime_ms, changed.mtime_ms) == (5000, 5070)


@async_test
async def test_the_size_of_a_value_is_limited() -> None:
    async with opened(":memory:") as database:
        tree = await database.connect()
        await tree.run(Create("/a", bytes(DATA_BYTES_MAX)))
        with pytest.raises(BadArguments):
            await tree.run(SetData("/a", bytes(DATA_BYTES_MAX + 1)))


@async_test
async def test_many_batches_at_once_are_all_answered_in_order() -> None:
    async with opened(":memory:") as database:
        tree = await database.connect()
        await tree.run(Create("/a"))
        stats = await asyncio.gather(*(tree.run(SetData("/a", b"%d" % i)) for i in range(300)))
        assert [stat.version for stat in stats] == list(range(1, 301))
        assert (await tree.run(GetData("/a"))).data == b"299"


@async_test
async def test_closing_finishes_what_is_queued() -> None:
    database = await TreeDatabase.open(":memory:", ManualClock())
    tree = await database.connect()
    writes = [asyncio.ensure_future(tree.run(Create(f"/n{i}"))) for i in range(100)]
    await asyncio.sleep(0)
    await database.close()
    assert len(await asyncio.gather(*writes)) == 100
    with pytest.raises(ConnectionLoss):
        await tree.run(Exists("/n0"))


@async_test
async def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    async with opened(path):
        with pytest.raises(ConnectionLoss, match="in use by a running broker"):
            await TreeDatabase.open(str(path), ManualClock())


@async_test
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    path.write_bytes(b"this is certainly not an SQLite database" * 100)
    with pytest.raises(ConnectionLoss, match="not a database"):
        await TreeDatabase.open(str(path), ManualClock())


@async_test
async def test_a_refusal_that_is_not_of_sqlite_leaves_nobody_waiting(tmp_path: Path) -> None:
    with pytest.raises(ConnectionLoss, match="null"):
        await TreeDatabase.open(str(tmp_path / "a\0b"), ManualClock())


@async_test
async def test_a_database_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    async with opened(path):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConnectionLoss, match="schema version 99"):
        await TreeDatabase.open(str(path), ManualClock())


class _FailingClock(ManualClock):
    """Fails as a disk would: inside the transaction."""

    fails = False

    def time_ms(self) -> int:
        if self.fails:
            raise sqlite3.OperationalError("disk I/O error")
        return 0


@async_test
async def test_a_failing_database_ends_every_batch_and_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    failures: list[BaseException] = []
    clock = _FailingClock()
    database = await TreeDatabase.open(str(path), clock, failures.append)
    tree = await database.connect()
    clock.fails = True
    results = await asyncio.gather(
        tree.run(Create("/a")), tree.run(Create("/b")), tree.run(GetData("/")), return_exceptions=True
    )
    assert all(isinstance(result, ConnectionLoss) for result in results)
    with pytest.raises(ConnectionLoss):
        await tree.run(GetData("/"))
    assert [str(failure) for failure in failures] == ["disk I/O error"]
    await database.close()


@async_test
async def test_a_bug_leaves_nobody_waiting() -> None:
    failures: list[BaseException] = []
    database = await TreeDatabase.open(":memory:", ManualClock(), failures.append)
    tree = await database.connect()
    with pytest.raises(ConnectionLoss):
        await tree.run(Operation())
    assert len(failures) == 1
    await database.close()


@async_test
async def test_a_watcher_that_fails_does_not_hold_up_the_others() -> None:
    async with opened(":memory:") as database:
        tree = await database.connect()
        reported: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        events: list[WatchEvent] = []

        def fail(event: WatchEvent) -> None:
            raise ValueError("a bug")

        await tree.run(Create("/a"))
        await tree.submit([GetData("/a", fail), GetData("/a", events.append)])
        await tree.run(SetData("/a", b""))
        assert len(events) == 1
        assert len(reported) == 1


PATHS = ("/a", "/b", "/a/x", "/a/y", "/a/x/deep")

OPERATIONS: st.SearchStrategy[Operation[object]] = st.deferred(
    lambda: st.one_of(
        st.builds(GetData, st.sampled_from(PATHS)),
        st.builds(Exists, st.sampled_from(PATHS)),
        st.builds(GetChildren, st.sampled_from(("/", *PATHS))),
        WRITES,
        st.lists(WRITES, min_size=1, max_size=4).map(lambda writes: Multi(tuple(writes))),
    )
)
VERSIONS = st.sampled_from((-1, -1, 0, 1, 2))
WRITES = st.one_of(
    st.builds(
        Create, st.sampled_from((*PATHS, "/a/n-", "/n-")), st.binary(max_size=2), st.sampled_from(list(CreateMode))
    ),
    st.builds(SetData, st.sampled_from(PATHS), st.binary(max_size=2), VERSIONS),
    st.builds(Delete, st.sampled_from(PATHS), VERSIONS),
)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(st.none(), st.lists(OPERATIONS, min_size=1, max_size=6))), max_size=12
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_random_batches_do_what_a_simple_model_does(steps: list[tuple[int, list[Operation[object]] | None]]) -> None:
    """Two clients; a step is a batch of one of them, every read with a watch, or the loss of its session."""

    async def check() -> None:
        async with opened(":memory:") as database:
            trees = [await database.connect(), await database.connect()]
            model = TreeModel(2)
            events: list[list[WatchEvent]] = [[], []]
            watchers = [events[0].append, events[1].append]
            for client, batch in steps:
                if batch is None:
                    await trees[client].expire_session()
                    model.expire(client)
                else:
                    watched = [with_watcher(operation, watchers[client]) for operation in batch]
                    actual = await trees[client].submit(watched)
                    owners = [tree.session_id for tree in trees]
                    expected = [model.apply(client, operation) for operation in batch]
                    assert [outcome(result, owners) for result in actual] == expected
                await asyncio.sleep(0)
                assert events == model.events

    asyncio.run(check())


def with_watcher(operation: Operation[object], watcher: object) -> Operation[object]:
    match operation:
        case GetData(path) | Exists(path) | GetChildren(path):
            return type(operation)(path, watcher)
        case _:
            return operation


class _SmallStore(TreeStore):
    """A store on a disk of so many pages."""

    pages = 2**30

    def begin(self) -> None:
        self._connection.execute(f"PRAGMA max_page_count = {self.pages}")
        super().begin()


@pytest.fixture
def small_store(monkeypatch: pytest.MonkeyPatch) -> type[_SmallStore]:
    monkeypatch.setattr(tree_store, "TreeStore", _SmallStore)
    monkeypatch.setattr(_SmallStore, "pages", 2**30)
    return _SmallStore


@async_test
async def test_a_full_disk_refuses_writes_and_lives(tmp_path: Path, small_store: type[_SmallStore]) -> None:
    failures: list[BaseException] = []
    database = await TreeDatabase.open(str(tmp_path / "metadata.db"), ManualClock(), failures.append)
    tree = await database.connect()
    await tree.run(Create("/a", b"before"))
    seen: list[WatchEvent] = []
    await tree.run(GetData("/a", seen.append))
    await tree.run(GetChildren("/", seen.append))
    small_store.pages = 1
    large, read, small = await asyncio.gather(
        tree.submit([SetData("/a", bytes(50_000)), Create("/b", bytes(50_000))]),
        tree.run(GetData("/a")),
        tree.run(SetData("/a", b"fits!!")),
        return_exceptions=True,
    )
    assert isinstance(large, StorageFull)
    assert read.data == b"before"  # type: ignore[union-attr]
    assert small.version == 1, "what fits is written, and the refused change has left no version behind"  # type: ignore[union-attr]
    await asyncio.sleep(0)
    assert [event.path for event in seen] == ["/a"], "of what did happen, once"
    small_store.pages = 2**30
    await tree.submit([Create("/b", bytes(50_000))])
    await asyncio.sleep(0)
    assert [event.path for event in seen] == ["/a", "/"], "the watch that the refused change had taken is there"
    assert (await tree.run(GetData("/a"))).data == b"fits!!"
    assert not failures
    await database.close()


@pytest.mark.parametrize("error", [errno.EDQUOT, errno.EIO])
@async_test
async def test_a_quota_that_is_used_up_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """A limit of the size of files stands for the quota: SQLite reports both as an I/O error."""
    failures: list[BaseException] = []
    path = tmp_path / "metadata.db"
    database = await TreeDatabase.open(str(path), ManualClock(), failures.append)
    tree = await database.connect()
    await tree.run(Create("/a", bytes(2 * PROBE_BYTES)))  # so that the probe is within the limit

    def fsync(descriptor: int) -> None:
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as patch, files_of_at_most(path.with_name("metadata.db-wal").stat().st_size):
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageFull if error == errno.EDQUOT else ConnectionLoss):
            await tree.run(SetData("/a", bytes(500_000)))
    if error == errno.EDQUOT:
        assert (await tree.run(GetData("/a"))).data == bytes(2 * PROBE_BYTES)
        await tree.run(SetData("/a", bytes(500_000)))
    assert len(failures) == (error == errno.EIO)
    await database.close()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@async_test
async def test_a_session_ends_on_a_full_disk_and_none_begins(
    tmp_path: Path, small_store: type[_SmallStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(self: TreeStore, session_id: int = 0) -> int:
        self._connection.execute("CREATE TABLE filler (x)")
        self._connection.execute("INSERT INTO filler VALUES (zeroblob(100000))")
        raise AssertionError("there was space")

    async with opened(tmp_path / "metadata.db") as database:
        tree = await database.connect()
        await tree.run(Create("/e", b"", CreateMode.EPHEMERAL))
        small_store.pages = 1
        for step in ("start_session", "end_session"):
            monkeypatch.setattr(TreeStore, step, no_space)
        with pytest.raises(StorageFull):
            await database.connect()
        await tree.close()
        monkeypatch.undo()
    async with opened(tmp_path / "metadata.db") as database:
        assert await (await database.connect()).run(Exists("/e")) is None
