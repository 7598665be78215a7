from __future__ import annotations

import pytest
from kazoo import exceptions
from kazoo.protocol import serialization
from kazoo.protocol.states import ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from odradek.controller.tree.metadata_tree import (
    BadArguments,
    BadVersion,
    Check,
    Create,
    Created,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    SetData,
    Stat,
    TreeError,
    WatchEvent,
)
from odradek.controller.tree.zookeeper_requests import ZooKeeperRequests, path_of

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
OUR_STAT = Stat(1, 2, 11, 3, 4, 5, 6, 8, 9, 10)
PLAIN = ZooKeeperRequests("", sets_acl=False)
BELOW = ZooKeeperRequests("/kafka/one", sets_acl=False)


def watcher(event: WatchEvent) -> None:
    raise AssertionError("kazoo is given no watcher of ours")


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        (GetData("/x"), serialization.GetData("/kafka/one/x", False)),
        (GetData("/x", watcher), serialization.GetData("/kafka/one/x", True)),
        (Exists("/x"), serialization.Exists("/kafka/one/x", False)),
        (Exists("/x", watcher), serialization.Exists("/kafka/one/x", True)),
        (GetChildren("/"), serialization.GetChildren2("/kafka/one", False)),
        (GetChildren("/x", watcher), serialization.GetChildren2("/kafka/one/x", True)),
        (SetData("/x", None, 3), serialization.SetData("/kafka/one/x", None, 3)),
        (Delete("/x", 4), serialization.Delete("/kafka/one/x", 4)),
        (Create("/x", None), serialization.Create2("/kafka/one/x", None, OPEN_ACL_UNSAFE, 0)),
        (Create("/x", b"", CreateMode.EPHEMERAL), serialization.Create2("/kafka/one/x", b"", OPEN_ACL_UNSAFE, 1)),
        (
            Create("/x/", b"", CreateMode.PERSISTENT_SEQUENTIAL),
            serialization.Create2("/kafka/one/x/", b"", OPEN_ACL_UNSAFE, 2),
        ),
        (
            Create("/x", b"", CreateMode.EPHEMERAL_SEQUENTIAL),
            serialization.Create2("/kafka/one/x", b"", OPEN_ACL_UNSAFE, 3),
        ),
        (
            Multi((Create("/x", None), SetData("/x", b"y", 0), Delete("/z"), Check("/c", 5))),
            serialization.Transaction(
                [
                    serialization.Create("/kafka/one/x", None, OPEN_ACL_UNSAFE, 0),
                    serialization.SetData("/kafka/one/x", b"y", 0),
                    serialization.Delete("/kafka/one/z", -1),
                    serialization.CheckVersion("/kafka/one/c", 5),
                ]
            ),
        ),
    ],
)
def test_requests_carry_values_as_they_are_below_the_chroot(operation: Operation[object], request_: object) -> None:
    made = BELOW.request(operation)
    assert type(made) is type(request_)
    assert made == request_


def test_the_root_of_no_chroot_is_the_root() -> None:
    assert PLAIN.request(GetChildren("/")) == serialization.GetChildren2("/", False)
    assert PLAIN.without_chroot("/") == "/"
    assert BELOW.without_chroot("/kafka/one") == "/"
    assert BELOW.without_chroot("/kafka/one/x") == "/x"


@pytest.mark.parametrize("operation", [GetData("a"), Multi((Create("/a/"),)), Create("/a//b")])
def test_malformed_paths_are_refused_before_they_are_sent(operation: Operation[object]) -> None:
    with pytest.raises(BadArguments):
        PLAIN.request(operation)


def test_other_operations_are_bugs() -> None:
    with pytest.raises(TypeError):
        PLAIN.request(Operation())


@pytest.mark.parametrize(
    ("operation", "answer", "result"),
    [
        (GetData("/x"), (b"data", STAT), (b"data", OUR_STAT)),
        (GetData("/x"), (None, STAT), (None, OUR_STAT)),
        (Exists("/x"), STAT, OUR_STAT),
        (Exists("/x"), None, None),
        (GetChildren("/x"), (["b", "a"], STAT), (("a", "b"), OUR_STAT)),
        (Create("/s"), ("/kafka/one/s0000000001", STAT), Created("/s0000000001", OUR_STAT)),
        (SetData("/x", b""), STAT, OUR_STAT),
        (Delete("/x"), True, None),
        (
            Multi((Create("/a"), SetData("/a", b""), Delete("/b"), Check("/c", 1))),
            ["/kafka/one/a", STAT, True, True],
            ("/a", OUR_STAT, None, None),
        ),
    ],
)
def test_answers_become_results(operation: Operation[object], answer: object, result: object) -> None:
    assert BELOW.result(operation, answer) == result


def test_failed_transaction_names_the_operation_that_failed() -> None:
    answers = [exceptions.RolledBackError(), exceptions.BadVersionError(), exceptions.RuntimeInconsistency()]
    failed = PLAIN.result(Multi((Create("/a"), SetData("/b", b"", 3), Delete("/c"))), answers)
    assert isinstance(failed, MultiFailed)
    assert failed.index == 1
    assert isinstance(failed.cause, BadVersion)
    assert failed.path == "/b"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.NoNodeError(), NoNode),
        (exceptions.NodeExistsError(), NodeExists),
        (exceptions.BadVersionError(), BadVersion),
        (exceptions.NotEmptyError(), NotEmpty),
        (exceptions.NoChildrenForEphemeralsError(), NoChildrenForEphemerals),
        (exceptions.BadArgumentsError(), BadArguments),
        (exceptions.SessionExpiredError(), SessionExpired),
        (exceptions.NoAuthError(), TreeError),
        (ValueError("undecodable"), TreeError),
    ],
)
def test_refusals_are_told_with_the_node(error: Exception, kind: type[TreeError]) -> None:
    refused = PLAIN.result(GetData("/config/users"), error)
    assert type(refused) is kind
    assert refused.path == "/config/users"
    assert "/config/users" in str(refused)


def test_an_unanswered_transaction_is_about_its_first_operation() -> None:
    assert path_of(Multi((Check("/first", 0), Delete("/b")))) == "/first"
    assert path_of(Multi(())) == ""


@pytest.mark.parametrize(
    ("path", "acl"),
    [
        ("/brokers", CREATOR_ALL_ACL + READ_ACL_UNSAFE),
        ("/consumers", OPEN_ACL_UNSAFE),
        ("/consumers/group", CREATOR_ALL_ACL + READ_ACL_UNSAFE),
        ("/config/users", CREATOR_ALL_ACL),
        ("/config/users/alice", CREATOR_ALL_ACL),
        ("/config/brokers/1", CREATOR_ALL_ACL),
        ("/config/topics/t", CREATOR_ALL_ACL + READ_ACL_UNSAFE),
        ("/delegation_token/tokens/x", CREATOR_ALL_ACL),
        ("/delegation_token", CREATOR_ALL_ACL + READ_ACL_UNSAFE),
    ],
)
def test_nodes_belong_to_their_creator_with_set_acl(path: str, acl: list[object]) -> None:
    protected = ZooKeeperRequests("/chroot", sets_acl=True)
    for operation in (Create(path), Multi((Create(path),))):
        made = protected.request(operation)
        (create,) = made.operations if isinstance(made, serialization.Transaction) else (made,)
        assert create.acl == acl
