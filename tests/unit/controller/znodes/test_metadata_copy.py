from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.tree.embedded_tree import TreeDatabase
from odradek.controller.tree.metadata_tree import (
    ConnectionLoss,
    Create,
    CreateMode,
    Delete,
    GetChildren,
    GetData,
    MetadataTree,
    Multi,
    Operation,
    SetData,
    TreeError,
    parent_path,
)
from odradek.controller.znodes import metadata_copy, znodes
from odradek.controller.znodes.metadata_copy import (
    TRANSACTION_BYTES_MAX,
    TRANSACTION_OPERATIONS_MAX,
    CopyRefused,
    Node,
    Snapshot,
    copy_metadata,
    read_snapshot,
    transactions,
    writes_between,
)
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test

CHANGE = "/config/changes/config_change_"


@asynccontextmanager
async def trees(count: int = 2) -> AsyncIterator[list[MetadataTree]]:
    databases = [await TreeDatabase.open(":memory:", ManualClock(1000)) for _ in range(count)]
    try:
        yield [await database.connect() for database in databases]
    finally:
        for database in databases:
            await database.close()


async def write(tree: MetadataTree, *operations: Operation[object]) -> None:
    for result in await tree.submit(operations):
        assert not isinstance(result, TreeError), result


def cluster(name: str = "a", epoch: int = 3) -> list[Operation[object]]:
    """What a broker has left in a tree."""
    parents = ["/cluster", "/brokers", "/brokers/topics", "/brokers/topics/t", "/brokers/ids", "/config"]
    return [
        *map(Create, parents),
        Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(name)),
        Create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch)),
        Create(znodes.BROKER_SEQUENCE_ID, b""),
        Create(znodes.CONFIG_CHANGES),
        Create(znodes.LATEST_PRODUCER_ID_BLOCK, None),
    ]


@async_test
async def test_target_becomes_the_source() -> None:
    async with trees() as (source, target):
        await write(source, *cluster(), SetData("/brokers/topics/t", b"\x00\xff"), Create("/feature", b""))
        copied = await copy_metadata(source, target)
        snapshot = await read_snapshot(source)
        assert (await read_snapshot(target)).nodes.keys() == snapshot.nodes.keys()
        datas = [await tree.run(GetData("/brokers/topics/t")) for tree in (source, target)]
        assert [node.data for node in datas] == [b"\x00\xff"] * 2
        # Null and empty are two things to Kafka.
        assert (await target.run(GetData(znodes.LATEST_PRODUCER_ID_BLOCK))).data is None
        assert (await target.run(GetData("/feature"))).data == b""
        assert (copied.cluster_id, copied.nodes) == ("a", len(snapshot.nodes))
        assert (await copy_metadata(source, target)).writes == 0


@async_test
async def test_numbers_go_on_where_the_source_was() -> None:
    """A notification gets a number that none had, and a generated broker id is one that no broker had."""
    async with trees() as (source, target):
        numbered = Create(CHANGE, b"", CreateMode.PERSISTENT_SEQUENTIAL)
        await write(source, *cluster(), *[numbered] * 5, Delete(f"{CHANGE}0000000000"), Delete(f"{CHANGE}0000000004"))
        await write(source, *[SetData(znodes.BROKER_SEQUENCE_ID, b"")] * 3)
        await copy_metadata(source, target)
        names = (await target.run(GetChildren(znodes.CONFIG_CHANGES))).names
        assert names == tuple(f"config_change_{number:010d}" for number in (1, 2, 3))
        for tree in (source, target):
            assert (await tree.run(numbered)).path == f"{CHANGE}0000000005"
            assert (await tree.run(SetData(znodes.BROKER_SEQUENCE_ID, b""))).version == 4


@async_test
async def test_way_back_takes_over_what_was_changed_there() -> None:
    async with trees() as (source, target):
        await write(source, *cluster())
        await copy_metadata(source, target)
        await write(target, SetData(znodes.CONTROLLER_EPOCH, b"4"), Create("/brokers/topics/new", b"n"))
        await write(target, Delete("/brokers/topics/t"), SetData(znodes.BROKER_SEQUENCE_ID, b""))
        await copy_metadata(target, source)
        assert (await source.run(GetChildren(znodes.TOPICS))).names == ("new",)
        assert (await source.run(GetData(znodes.CONTROLLER_EPOCH))).data == b"4"
        assert (await source.run(GetData(znodes.BROKER_SEQUENCE_ID))).stat.version == 1


@async_test
async def test_what_is_not_kafkas_is_left_alone() -> None:
    async with trees() as (source, target):
        await write(source, *cluster(), Create("/hbase", b"theirs"))
        await write(target, Create("/zookeeper"), Create("/zookeeper/quota", b"q"))
        await copy_metadata(source, target)
        names = (await target.run(GetChildren("/"))).names
        assert "hbase" not in names
        assert (await target.run(GetData("/zookeeper/quota"))).data == b"q"


@pytest.mark.parametrize(
    ("source_epoch", "target_cluster", "target_epoch", "message"),
    [
        (3, "b", 1, "the target belongs to the cluster b, the source is the cluster a"),
        (3, "a", 3, "its controller epoch is 3, that of the source is 3"),
        (3, "a", 4, "its controller epoch is 4, that of the source is 3"),
        (3, "a", 2, None),
    ],
)
@async_test
async def test_target_that_is_not_an_earlier_state_of_the_cluster_is_refused(
    source_epoch: int, target_cluster: str, target_epoch: int, message: str | None
) -> None:
    async with trees() as (source, target):
        await write(source, *cluster("a", source_epoch))
        await write(target, *cluster(target_cluster, target_epoch), Create("/brokers/topics/theirs"))
        if message is not None:
            before = await read_snapshot(target)
            with pytest.raises(CopyRefused, match=message):
                await copy_metadata(source, target)
            assert await read_snapshot(target) == before
        await copy_metadata(source, target, overwrite=message is not None)
        copy = await read_snapshot(target)
        assert (copy.cluster_id, copy.controller_epoch) == ("a", source_epoch)
        assert "/brokers/topics/theirs" not in copy.nodes


@async_test
async def test_metadata_without_a_cluster_is_refused() -> None:
    async with trees() as (source, target):
        await write(source, Create("/brokers"))
        with pytest.raises(CopyRefused, match="the source holds no metadata of a cluster"):
            await copy_metadata(source, target)
        await write(target, *cluster())
        with pytest.raises(CopyRefused, match="the target holds metadata without a /cluster/id"):
            await copy_metadata(target, source)


@pytest.mark.parametrize("used", [0, 1])
@async_test
async def test_trees_of_living_brokers_are_refused(used: int) -> None:
    async with trees() as both:
        await write(both[0], *cluster(epoch=3))
        await write(both[1], *cluster(epoch=2))
        await write(both[used], Create("/brokers/ids/7", b"{}", CreateMode.EPHEMERAL))
        role = ("source", "target")[used]
        with pytest.raises(CopyRefused, match=f"the {role} is in use: /brokers/ids/7"):
            await copy_metadata(*both, overwrite=True)
        await write(both[used], Delete("/brokers/ids/7"), Create(znodes.CONTROLLER, b"{}"))
        with pytest.raises(CopyRefused, match=f"the {role} is controlled by KRaft"):
            await copy_metadata(*both, overwrite=True)


class Killed:
    """Nodes whose client dies after some transactions."""

    def __init__(self, tree: MetadataTree, transactions_left: int) -> None:
        self._tree = tree
        self._transactions_left = transactions_left

    async def submit(self, operations: Sequence[Operation[object]]) -> list[object]:
        if isinstance(operations[0], Multi):
            if not self._transactions_left:
                raise ConnectionLoss("", "killed")
            self._transactions_left -= 1
        return await self._tree.submit(operations)


@pytest.mark.parametrize("way_back", [False, True])
@async_test
async def test_killed_copy_is_completed_by_the_next(way_back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any transaction: the copy knows that it is not complete, and nobody has to overwrite anything."""
    monkeypatch.setattr(metadata_copy, "TRANSACTION_OPERATIONS_MAX", 2)
    numbered = Create(CHANGE, b"", CreateMode.PERSISTENT_SEQUENTIAL)
    done = 0
    while True:
        async with trees() as (source, target):
            await write(source, *cluster(epoch=5), numbered, numbered, Delete(f"{CHANGE}0000000000"))
            await write(source, SetData(znodes.BROKER_SEQUENCE_ID, b""))
            if way_back:
                await write(target, *cluster(epoch=4), Create("/brokers/topics/old"))
            try:
                await copy_metadata(source, Killed(target, done))  # type: ignore[arg-type]
            except ConnectionLoss:
                assert done == 0 or (await read_snapshot(target)).controller_epoch == -1
                await copy_metadata(source, target)
                assert (await copy_metadata(source, target)).writes == 0
                assert (await target.run(numbered)).path == f"{CHANGE}0000000002"
            else:
                break
        done += 1
    assert done == (4 if way_back else 8)


DATA = st.none() | st.binary(max_size=3)
NAMES = st.sampled_from(["topics", "topics/t", "topics/t/p", "topics/u", "ids", "seqid"])


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    nodes = {f"/brokers/{name}": draw(DATA) for name in draw(st.sets(NAMES))}
    for path in list(nodes):
        while (path := parent_path(path)) != "/":
            nodes.setdefault(path, None)
    nodes |= {"/cluster": None, znodes.CLUSTER_ID: znodes.encode_cluster_id("a")}
    return Snapshot(nodes={path: Node(data) for path, data in nodes.items()})


@given(snapshots(), snapshots())
def test_differences_lead_from_one_tree_to_the_other(wanted: Snapshot, found: Snapshot) -> None:
    """Parents are created before and deleted after their children, and each node is written at most once."""
    state = {path: node.data for path, node in found.nodes.items()} | {"/": None}
    writes = list(writes_between(wanted, found))
    for operation in writes:
        match operation:
            case Create(path, data):
                assert path not in state
                assert parent_path(path) in state
                state[path] = data
            case SetData(path, data):
                assert state[path] != data
                state[path] = data
            case Delete(path):
                assert not any(parent_path(other) == path for other in state if other != "/")
                del state[path]
    del state["/"]
    assert state == {path: node.data for path, node in wanted.nodes.items()}
    assert len({operation.path for operation in writes}) == len(writes)


def test_transactions_stay_under_both_limits() -> None:
    small = [Create(f"/{number}") for number in range(TRANSACTION_OPERATIONS_MAX + 1)]
    assert [len(multi.operations) for multi in transactions(small)] == [TRANSACTION_OPERATIONS_MAX, 1]
    half = TRANSACTION_BYTES_MAX // 2 - 128 - 2
    fitting = [Create("/a", b"a" * half), Create("/b", b"b" * half)]
    assert [len(multi.operations) for multi in transactions(fitting)] == [2]
    over = [Create("/a", b"a" * half), Create("/b", b"b" * (half + 1)), Create("/c", b"c" * TRANSACTION_BYTES_MAX)]
    assert [len(multi.operations) for multi in transactions(over)] == [1, 1, 1]
