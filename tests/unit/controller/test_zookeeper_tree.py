from __future__ import annotations

import pytest
from kazoo import exceptions
from kazoo.protocol import serialization
from kazoo.protocol.states import ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

from odradek.controller import zookeeper_tree
from odradek.controller.metadata_tree import (
    BadVersion,
    Check,
    ConnectionLoss,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    MultiFailed,
    NoNode,
    SessionExpired,
    SetData,
    TreeError,
)
from odradek.controller.zookeeper_tree import ZooKeeperNodes
from tests.support.async_test import async_test

STAT = ZnodeStat(
    czxid=1,
    mzxid=2,
    ctime=3,
    mtime=4,
    version=5,
    cversion=6,
    aversion=0,
    ephemeralOwner=8,
    dataLength=9,
    numChildren=10,
    pzxid=11,
)


class _Answer:
    def __init__(self, answer: object) -> None:
        self.exception = answer if isinstance(answer, Exception) else None
        self.value = None if self.exception else answer

    def wait(self) -> bool:
        return True


class _Transaction:
    def __init__(self, client: _Client) -> None:
        self.operations: list[object] = []
        self._client = client

    def commit_async(self) -> _Answer:
        return self._client.ask(self.operations)


class _Handler:
    timeout_exception = TimeoutError


class _Client:
    """What is used of KazooClient: notes the requests, answers from a list."""

    handler = _Handler()

    def __init__(self, hosts: str, timeout: float, logger: object) -> None:
        self.hosts = hosts
        self.asked: list[object] = []
        self.answers: list[object] = []
        self.is_reachable = True

    def ask(self, request: object) -> _Answer:
        self.asked.append(request)
        return _Answer(self.answers.pop(0))

    def start(self, timeout: float) -> None:
        if not self.is_reachable:
            raise TimeoutError("Connection time-out")

    def ensure_path(self, path: str) -> None:
        self.asked.append(path)

    def get_async(self, path: str) -> _Answer:
        return self.ask(("get", path))

    def get_children_async(self, path: str, include_data: bool) -> _Answer:
        assert include_data
        return self.ask(("children", path))

    def transaction(self) -> _Transaction:
        return _Transaction(self)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> list[_Client]:
    """The clients that were made."""
    made: list[_Client] = []

    def make(hosts: str, timeout: float, logger: object) -> _Client:
        made.append(_Client(hosts, timeout, logger))
        return made[-1]

    monkeypatch.setattr(zookeeper_tree, "KazooClient", make)
    return made


def nodes_and_client(made: list[_Client], *answers: object, chroot: str = "") -> tuple[ZooKeeperNodes, _Client]:
    nodes = ZooKeeperNodes("zk:2181", chroot)
    made[0].answers += answers
    return nodes, made[0]


@async_test
async def test_reads_are_answered_in_their_order(client: list[_Client]) -> None:
    nodes, kazoo = nodes_and_client(
        client, (None, STAT), (["b", "a"], STAT), exceptions.NoNodeError(), chroot="/kafka/one"
    )
    data, children, missing = await nodes.submit([GetData("/x"), GetChildren("/"), GetData("/y")])
    assert kazoo.asked == [("get", "/kafka/one/x"), ("children", "/kafka/one"), ("get", "/kafka/one/y")]
    assert data.data is None
    assert children.names == ("a", "b")
    assert data.stat == children.stat
    assert tuple(data.stat) == (1, 2, 11, 3, 4, 5, 6, 8, 9, 10)
    assert isinstance(missing, NoNode)
    assert missing.path == "/y"


@async_test
async def test_transaction_carries_values_as_they_are(client: list[_Client]) -> None:
    nodes, kazoo = nodes_and_client(client, ["/a", "/s0000000001", STAT, True, True])
    sequential = Create("/s", b"", CreateMode.PERSISTENT_SEQUENTIAL)
    writes = (Create("/a", None), sequential, SetData("/a", None, 3), Delete("/b", 4), Check("/c", 5))
    (result,) = await nodes.submit([Multi(writes)])
    assert kazoo.asked == [
        [
            serialization.Create("/a", None, OPEN_ACL_UNSAFE, 0),
            serialization.Create("/s", b"", OPEN_ACL_UNSAFE, 2),
            serialization.SetData("/a", None, 3),
            serialization.Delete("/b", 4),
            serialization.CheckVersion("/c", 5),
        ]
    ]
    assert result[:2] == ("/a", "/s0000000001")
    assert result[2].version == 5
    assert result[3:] == (None, None)


@async_test
async def test_failed_transaction_names_the_operation_that_failed(client: list[_Client]) -> None:
    answers = [exceptions.RolledBackError(), exceptions.BadVersionError(), exceptions.RuntimeInconsistency()]
    nodes, _ = nodes_and_client(client, answers)
    (failed,) = await nodes.submit([Multi((Create("/a"), SetData("/b", b"", 3), Delete("/c")))])
    assert isinstance(failed, MultiFailed)
    assert failed.index == 1
    assert isinstance(failed.cause, BadVersion)
    assert failed.path == "/b"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (exceptions.ConnectionLoss(), ConnectionLoss),
        (exceptions.ConnectionClosedError(), SessionExpired),
        (exceptions.SessionExpiredError(), SessionExpired),
        (TypeError(), TypeError),
    ],
)
@async_test
async def test_loss_of_the_connection_is_raised(
    client: list[_Client], error: Exception, raised: type[Exception]
) -> None:
    nodes, _ = nodes_and_client(client, (b"", STAT), error)
    with pytest.raises(raised):
        await nodes.submit([GetData("/a"), GetData("/b")])


@async_test
async def test_whatever_the_server_refuses_is_told_with_the_node(client: list[_Client]) -> None:
    nodes, _ = nodes_and_client(client, exceptions.NoAuthError(), exceptions.MarshallingError())
    for refused in await nodes.submit([GetData("/config/users"), Multi((Create("/large"), Delete("/b")))]):
        assert type(refused) is TreeError
        assert refused.path in str(refused)
        assert refused.path in ("/config/users", "/large")


@async_test
async def test_server_that_does_not_answer_is_named(client: list[_Client]) -> None:
    nodes, kazoo = nodes_and_client(client)
    kazoo.is_reachable = False
    with pytest.raises(ConnectionLoss, match="no ZooKeeper answers at zk:2181"):
        await nodes.connect()


@pytest.mark.parametrize(("chroot", "path"), [("", "/"), ("/a/b", "/a/b")])
@async_test
async def test_chroot_is_made(client: list[_Client], chroot: str, path: str) -> None:
    nodes, kazoo = nodes_and_client(client, chroot=chroot)
    await nodes.connect()
    await nodes.create_chroot()
    assert kazoo.asked == [path]


@async_test
async def test_other_operations_are_bugs(client: list[_Client]) -> None:
    nodes, _ = nodes_and_client(client)
    for operation in (Exists("/a"), GetData("/a", lambda event: None)):
        with pytest.raises(TypeError):
            await nodes.submit([operation])
