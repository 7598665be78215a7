"""What every implementation of the metadata tree must do: ZooKeeper's contract, as tests.

Subclass `MetadataTreeContract` with a `cluster` that opens clients over one tree; its tests then run against that.
All nodes live under a directory of the test's own, so that a tree shared by many tests serves as well.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from odradek.controller.tree.metadata_tree import (
    BadArguments,
    BadVersion,
    Check,
    Create,
    CreateMode,
    DataAndStat,
    Delete,
    Exists,
    GetChildren,
    GetData,
    MetadataTree,
    Multi,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    SetData,
    Stat,
    TreeError,
    WatchEvent,
    WatchEventType,
)
from tests.support.async_test import async_test

EPHEMERAL = CreateMode.EPHEMERAL
SEQUENTIAL = CreateMode.PERSISTENT_SEQUENTIAL


class Clients(Protocol):
    """A tree that clients can be opened on."""

    root: str

    async def connect(self) -> MetadataTree: ...

    async def expire(self, tree: MetadataTree) -> None:
        """Lose the session of a client as after a time-out."""

    async def quiesce(self) -> None:
        """Wait until everything that is on its way to the clients has arrived."""


@dataclass
class _Listener:
    log: list[str]
    on_lost: Callable[[], Awaitable[None]] | None = None

    async def session_lost(self) -> None:
        self.log.append("lost")
        if self.on_lost is not None:
            await self.on_lost()
        self.log.append("handled")

    def session_started(self) -> None:
        self.log.append("started")


class MetadataTreeContract:
    """See the module."""

    @asynccontextmanager
    async def cluster(self, tmp_path: Path) -> AsyncIterator[Clients]:
        raise NotImplementedError
        yield

    # Nodes

    @async_test
    async def test_create_get_set_delete(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            created = await tree.run(Create(path, b"one"))
            assert created.path == path
            assert (created.stat.version, created.stat.data_length, created.stat.ephemeral_owner) == (0, 3, 0)
            assert (await tree.run(GetData(path))).data == b"one"
            changed = await tree.run(SetData(path, b"two!"))
            assert (changed.version, changed.czxid, changed.data_length) == (1, created.stat.czxid, 4)
            assert changed.mzxid > created.stat.mzxid
            assert (await tree.run(GetData(path))).stat == changed
            await tree.run(Delete(path))
            assert await tree.run(Exists(path)) is None

    @async_test
    async def test_null_data_and_empty_data_are_different(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree = await clients.connect()
            await tree.submit([Create(clients.root + "/null"), Create(clients.root + "/empty", b"")])
            assert (await tree.run(GetData(clients.root + "/null"))).data is None
            assert (await tree.run(GetData(clients.root + "/empty"))).data == b""

    @async_test
    async def test_an_error_is_freed_when_nobody_uses_it(self, tmp_path: Path) -> None:
        """Without a collection: the broker makes millions of objects before the oldest ones are looked through."""
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/none"

            async def refused() -> weakref.ref[TreeError]:
                try:
                    await tree.run(GetData(path))
                except NoNode as error:
                    return weakref.ref(error)
                raise AssertionError("the node exists")

            gc.disable()
            try:
                error = await refused()
                for _ in range(2):  # the tree may keep its last answers
                    await tree.run(Exists(path))
                assert error() is None
            finally:
                gc.enable()

    @async_test
    async def test_what_does_not_exist(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/none"
            for operation in (
                GetData(path),
                GetChildren(path),
                SetData(path, b""),
                Delete(path),
                Create(path + "/child"),
            ):
                with pytest.raises(NoNode):
                    await tree.run(operation)

    @async_test
    async def test_a_node_is_created_once(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            await tree.run(Create(path, b"first"))
            with pytest.raises(NodeExists):
                await tree.run(Create(path, b"second"))
            assert (await tree.run(GetData(path))).data == b"first"

    @async_test
    async def test_expected_versions(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            await tree.run(Create(path, b""))
            with pytest.raises(BadVersion):
                await tree.run(SetData(path, b"x", 1))
            assert (await tree.run(SetData(path, b"x", 0))).version == 1
            assert (await tree.run(SetData(path, b"y"))).version == 2
            with pytest.raises(BadVersion):
                await tree.run(Delete(path, 1))
            await tree.run(Delete(path, 2))

    @async_test
    async def test_a_recreated_node_starts_afresh(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            first = await tree.run(Create(path))
            await tree.submit([SetData(path, b""), Delete(path)])
            second = await tree.run(Create(path))
            assert second.stat.version == 0
            assert second.stat.czxid > first.stat.czxid

    @async_test
    async def test_only_childless_nodes_are_deleted(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            await tree.submit([Create(path), Create(path + "/b")])
            with pytest.raises(NotEmpty):
                await tree.run(Delete(path))
            await tree.submit([Delete(path + "/b"), Delete(path)])
            assert await tree.run(Exists(path)) is None

    @async_test
    async def test_children_and_their_version(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            await tree.submit([Create(path), Create(path + "/y"), Create(path + "/x"), Create(path + "/x/deeper")])
            children = await tree.run(GetChildren(path))
            assert (children.names, children.stat.num_children, children.stat.cversion) == (("x", "y"), 2, 2)
            await tree.run(Delete(path + "/y"))
            children = await tree.run(GetChildren(path))
            assert (children.names, children.stat.num_children, children.stat.cversion) == (("x",), 1, 3)
            assert children.stat.version == 0
            assert children.stat.pzxid > children.stat.czxid

    @async_test
    async def test_children_are_not_those_of_a_sibling_with_a_longer_name(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree = await clients.connect()
            await tree.submit([Create(clients.root + p) for p in ("/a", "/a.b", "/a.b/c", "/a%", "/a_")])
            assert (await tree.run(GetChildren(clients.root + "/a"))).names == ()

    @async_test
    async def test_sequential_nodes_count_creations_of_the_parent(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/q"
            await tree.run(Create(path))
            first = await tree.run(Create(path + "/n_", b"", SEQUENTIAL))
            assert first.path == path + "/n_0000000000"
            await tree.submit([Create(path + "/other"), Delete(first.path)])
            second = await tree.run(Create(path + "/n_", b"", SEQUENTIAL))
            assert second.path == path + "/n_0000000002"
            nameless = await tree.run(Create(path + "/", b"", SEQUENTIAL))
            assert nameless.path == path + "/0000000003"

    @async_test
    async def test_malformed_paths_are_refused(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree = await clients.connect()
            for path in ("", "a", "/a/", "//a", "/a//b", "/a/./b", "/../a", "/a\0"):
                with pytest.raises(BadArguments):
                    await tree.run(Create(path))

    # Batches and multis

    @async_test
    async def test_operations_of_a_batch_succeed_and_fail_by_themselves(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            results = await tree.submit([Create(path), Create(path), Create(path + "/b"), Create(path + "/c/d")])
            kinds = [type(result) if isinstance(result, TreeError) else None for result in results]
            assert kinds == [None, NodeExists, None, NoNode]
            assert await tree.submit([]) == []

    @async_test
    async def test_many_reads_see_what_was_written_before_them(self, tmp_path: Path) -> None:
        """Also those that an implementation puts together."""
        async with self.cluster(tmp_path) as clients:
            tree = await clients.connect()
            paths = [f"{clients.root}/{'ä' * (number % 3)}{number}" for number in range(100)]
            contents = [None if number % 5 == 1 else bytes(number) for number in range(100)]
            await tree.submit([Create(path, data) for path, data in zip(paths, contents, strict=True)])
            changes = [SetData(paths[0], b"changed", 0), Delete(paths[7])]
            reads = [GetData(path) for path in paths]
            results = await tree.submit([*reads, *changes, *reads])
            assert not any(isinstance(each, TreeError) for each in results[:102])
            after = results[102:]
            assert isinstance(after[7], NoNode)
            contents[0] = b"changed"
            for number, found in enumerate(after):
                if number != 7:
                    assert isinstance(found, DataAndStat)
                    assert (found.data, found.stat.version) == (contents[number], int(number == 0))
                    assert found.stat.data_length == len(contents[number] or b"")

    @async_test
    async def test_a_multi_is_applied_under_one_zxid(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            before = await tree.run(Create(clients.root + "/before"))
            created, changed, deleted, checked = await tree.run(
                Multi((Create(path, b"", EPHEMERAL), SetData(path, b"x", 0), Delete(path, 1), Check(clients.root, 0)))
            )
            assert (created, deleted, checked) == (path, None, None)
            assert isinstance(changed, Stat)
            assert changed.czxid == changed.mzxid > before.stat.czxid
            assert changed.version == 1
            sequential = await tree.run(Multi((Create(path + "-", b"", SEQUENTIAL),)))
            assert sequential == (path + "-0000000002",)

    @async_test
    async def test_a_multi_fails_as_a_whole(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            await tree.run(Create(path, b"old"))
            events: list[WatchEvent] = []
            await tree.submit([GetData(path, events.append), Exists(path + "2", events.append)])
            with pytest.raises(MultiFailed) as failure:
                await tree.run(Multi((SetData(path, b"new"), Create(path + "2"), Check(path, 0), Delete(path))))
            assert failure.value.index == 2
            assert isinstance(failure.value.cause, BadVersion)
            assert (await tree.run(GetData(path))).data == b"old"
            assert await tree.run(Exists(path + "2")) is None
            assert events == []

    @async_test
    async def test_check(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            await tree.run(Create(path))
            await tree.run(Multi((Check(path, 0),)))
            for check, cause in ((Check(path, 1), BadVersion), (Check(path + "/b", 0), NoNode)):
                with pytest.raises(MultiFailed) as failure:
                    await tree.run(Multi((check,)))
                assert (failure.value.index, type(failure.value.cause)) == (0, cause)

    # Watches

    @async_test
    async def test_a_data_watch_hears_of_one_change(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/a"
            events: list[WatchEvent] = []
            await other.run(Create(path))
            await tree.run(GetData(path, events.append))
            await other.submit([SetData(path, b"1"), SetData(path, b"2")])
            await clients.quiesce()
            assert events == [WatchEvent(WatchEventType.CHANGED, path)]

    @async_test
    async def test_an_exists_watch_hears_of_creation_and_of_deletion(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/a"
            events: list[WatchEvent] = []
            assert await tree.run(Exists(path, events.append)) is None
            await other.run(Create(path))
            await clients.quiesce()
            assert events == [WatchEvent(WatchEventType.CREATED, path)]
            await tree.run(Exists(path, events.append))
            await other.run(Delete(path))
            await clients.quiesce()
            assert events[1:] == [WatchEvent(WatchEventType.DELETED, path)]

    @async_test
    async def test_a_child_watch_hears_of_children_and_not_of_data(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/a"
            events: list[WatchEvent] = []
            await other.run(Create(path))
            await tree.run(GetChildren(path, events.append))
            await other.submit([SetData(path, b"1"), Create(path + "/b"), Create(path + "/c")])
            await clients.quiesce()
            assert events == [WatchEvent(WatchEventType.CHILDREN, path)]
            await tree.run(GetChildren(path, events.append))
            await other.submit([SetData(path + "/b", b"x"), Create(path + "/b/deeper")])
            await clients.quiesce()
            assert len(events) == 1

    @async_test
    async def test_deleting_a_node_tells_data_and_child_watches(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/a"
            data: list[WatchEvent] = []
            children: list[WatchEvent] = []
            await other.run(Create(path))
            await tree.submit([GetData(path, data.append), GetChildren(path, children.append)])
            await other.run(Delete(path))
            await clients.quiesce()
            assert data == children == [WatchEvent(WatchEventType.DELETED, path)]

    @async_test
    async def test_a_watcher_set_twice_is_called_once(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/a"
            events: list[WatchEvent] = []
            await other.run(Create(path))
            watcher = events.append
            await tree.submit([GetData(path, watcher), Exists(path, watcher), GetChildren(path, watcher)])
            await other.run(Delete(path))
            await clients.quiesce()
            assert events == [WatchEvent(WatchEventType.DELETED, path)]

    @async_test
    async def test_reading_what_is_not_there_leaves_no_watch(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            events: list[WatchEvent] = []
            await tree.submit([GetData(path, events.append), GetChildren(path, events.append)])
            await tree.run(Create(path))
            await clients.quiesce()
            assert events == []

    @async_test
    async def test_a_client_hears_of_a_change_before_it_reads_it(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/a"
            log: list[str] = []
            await tree.run(Create(path, b"old"))
            await tree.run(GetData(path, lambda event: log.append(event.type.value)))
            await tree.run(SetData(path, b"new"))
            log.append("answered")
            assert log == ["changed", "answered"]

    # Sessions

    @async_test
    async def test_ephemeral_nodes_end_with_their_session(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/e"
            created = await tree.run(Create(path, b"", EPHEMERAL))
            assert created.stat.ephemeral_owner == tree.session_id
            events: list[WatchEvent] = []
            await other.submit([Exists(path, events.append), GetChildren(clients.root, events.append)])
            await tree.close()
            assert await other.run(Exists(path)) is None
            await clients.quiesce()
            assert {event.type for event in events} == {WatchEventType.DELETED, WatchEventType.CHILDREN}

    @async_test
    async def test_ephemeral_nodes_have_no_children(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, path = await clients.connect(), clients.root + "/e"
            await tree.run(Create(path, b"", EPHEMERAL))
            with pytest.raises(NoChildrenForEphemerals):
                await tree.run(Create(path + "/child"))

    @async_test
    async def test_a_lost_session_is_handled_before_the_next_begins(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other, path = await clients.connect(), await clients.connect(), clients.root + "/e"
            log: list[str] = []

            async def use_the_lost_session() -> None:
                with pytest.raises(SessionExpired):
                    await tree.run(GetData(clients.root))

            tree.add_session_listener(_Listener(log, use_the_lost_session))
            await tree.submit([Create(path, b"", EPHEMERAL), GetData(clients.root, lambda event: log.append("watch"))])
            lost_id = tree.session_id
            await clients.expire(tree)
            assert log == ["lost", "handled", "started"]
            assert tree.session_id != lost_id
            assert await tree.run(Exists(path)) is None
            await other.run(SetData(clients.root, b"x"))
            await clients.quiesce()
            assert "watch" not in log

    @async_test
    async def test_sessions_of_other_clients_go_on(self, tmp_path: Path) -> None:
        async with self.cluster(tmp_path) as clients:
            tree, other = await clients.connect(), await clients.connect()
            assert tree.session_id != other.session_id
            await other.run(Create(clients.root + "/e", b"", EPHEMERAL))
            await clients.expire(tree)
            assert await tree.run(Exists(clients.root + "/e")) is not None
