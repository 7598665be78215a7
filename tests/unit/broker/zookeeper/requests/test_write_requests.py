from __future__ import annotations

import pytest

from odradek.broker.zookeeper.codes import Code, OpCode
from tests.support.wire.zookeeper_script import (
    auth,
    create,
    i32,
    i64,
    multi,
    path_and_version,
    path_and_watch,
    set_acl,
    set_data,
)
from tests.unit.broker.zookeeper.conftest import Service, TestedClient


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (0, Code.OK),
        (3, Code.OK),
        (4, Code.OK),
        (5, Code.UNIMPLEMENTED),
        (6, Code.UNIMPLEMENTED),
        (7, Code.BAD_ARGUMENTS),
        (-1, Code.BAD_ARGUMENTS),
    ],
)
def test_flags_of_a_create(client: TestedClient, flags: int, code: Code) -> None:
    assert client.ask(OpCode.CREATE, create("/a", flags=flags))[0] == code


def test_sequence_numbers_count_what_was_created(client: TestedClient) -> None:
    client.ask(OpCode.CREATE, create("/p"))
    client.ask(OpCode.CREATE, create("/p/a"))
    client.ask(OpCode.DELETE, path_and_version("/p/a"))
    assert client.ask(OpCode.CREATE, create("/p/s-", flags=2))[1][4:] == b"/p/s-0000000001"


@pytest.mark.parametrize("path", ["/", "/zookeeper", "/zookeeper/config", "", "a", "/a\0"])
def test_nodes_that_cannot_be_deleted(client: TestedClient, path: str) -> None:
    assert client.ask(OpCode.DELETE, path_and_version(path))[0] == Code.BAD_ARGUMENTS


def test_a_multi_is_applied_as_a_whole(service: Service, client: TestedClient) -> None:
    other = service.client()
    other.ask(OpCode.EXISTS, path_and_watch("/m", True))
    zxid = service.processor.zxid
    failing = multi(
        (OpCode.CREATE, create("/m")),
        (OpCode.CHECK, path_and_version("/m", 9)),
        (OpCode.DELETE, path_and_version("/m")),
    )
    code, body = client.ask(OpCode.MULTI, failing)
    assert code == Code.OK
    results = [body[at : at + 13] for at in (0, 13, 26)]
    expected = [Code.OK, Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY]
    assert results == [i32(-1) + b"\0" + i32(each) + i32(each) for each in expected]
    assert service.store.find("/m") is None
    assert other.events() == []
    client.ask(OpCode.MULTI, multi((OpCode.CREATE, create("/m")), (OpCode.SET_DATA, set_data("/m", b"x", 0))))
    assert other.events() == [(1, "/m")]
    assert service.processor.zxid == zxid + 2


@pytest.mark.parametrize(
    "body",
    [
        multi((OpCode.GET_DATA, path_and_watch("/"))),
        multi((77, b"")),
        multi((OpCode.CREATE, create("/x", flags=9))),
        multi((OpCode.CREATE, create(None))),
        multi((OpCode.CREATE, create("/x")))[:-9],
    ],
)
def test_a_multi_that_cannot_be_decoded(client: TestedClient, body: bytes) -> None:
    assert client.ask(OpCode.MULTI, body)[0] == Code.MARSHALLING_ERROR


def test_acls_are_stored_with_a_version_of_their_own(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.AUTH, auth("digest", b"alice:secret"), -4)
    client.ask(OpCode.CREATE, create("/a"))
    assert client.ask(OpCode.SET_ACL, set_acl("/a", [(31, "auth", "")], 3))[0] == Code.BAD_VERSION
    assert client.ask(OpCode.SET_ACL, set_acl("/a", [(31, "auth", "")], 0))[0] == Code.OK
    assert service.processor.tree.acl_version("/a") == 1
    assert service.client().ask(OpCode.SET_DATA, set_data("/a", b""))[0] == Code.NO_AUTH
    assert service.client().ask(OpCode.CREATE, create("/a/b"))[0] == Code.NO_AUTH
    client.ask(OpCode.CREATE, create("/a/b"))
    assert service.client().ask(OpCode.DELETE, path_and_version("/a/b"))[0] == Code.NO_AUTH
    client.ask(OpCode.DELETE, path_and_version("/a/b"))
    client.ask(OpCode.DELETE, path_and_version("/a"))
    client.ask(OpCode.CREATE, create("/a"))
    assert service.client().ask(OpCode.SET_DATA, set_data("/a", b""))[0] == Code.OK, "the ACL went with its node"


def test_a_time_to_live_is_for_nodes_with_one(client: TestedClient) -> None:
    assert client.ask(OpCode.CREATE_TTL, create("/t", flags=0) + i64(5))[0] == Code.BAD_ARGUMENTS
    assert client.ask(OpCode.CREATE_TTL, create("/t", flags=0) + i64(-1))[0] == Code.OK


def test_an_ephemeral_node_has_no_children(client: TestedClient) -> None:
    client.ask(OpCode.CREATE, create("/e", flags=1))
    assert client.ask(OpCode.CREATE, create("/e/x"))[0] == Code.NO_CHILDREN_FOR_EPHEMERALS
