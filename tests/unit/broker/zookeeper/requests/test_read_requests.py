from __future__ import annotations

import struct

from odradek.broker.zookeeper.codes import Code, OpCode
from tests.support.wire.zookeeper_script import (
    create,
    i32,
    i64,
    multi,
    path_and_watch,
    set_data,
    set_watches,
    text,
    texts,
)
from tests.unit.broker.zookeeper.conftest import Service, TestedClient


def test_a_watch_for_a_node_that_is_not_there_is_set_by_exists_alone(service: Service, client: TestedClient) -> None:
    assert client.ask(OpCode.GET_DATA, path_and_watch("/a", True))[0] == Code.NO_NODE
    assert client.ask(OpCode.GET_CHILDREN, path_and_watch("/a", True))[0] == Code.NO_NODE
    assert service.processor.tree.number_of_watches() == 0
    assert client.ask(OpCode.EXISTS, path_and_watch("/a", True))[0] == Code.NO_NODE
    assert service.processor.tree.number_of_watches() == 1


def test_watches_that_a_client_sets_again(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.CREATE, create("/old"))
    zxid = service.processor.zxid
    client.ask(OpCode.CREATE, create("/new"))
    client.ask(OpCode.SET_DATA, set_data("/new", b"x"))
    body = set_watches(zxid, ["/old", "/new", "/gone"], ["/none", "/old"], ["/old", "/gone"])
    assert client.ask(OpCode.SET_WATCHES2, body + texts(["/p"]) + texts(["/r"]))[0] == Code.OK
    assert client.events() == [(3, "/new"), (2, "/gone"), (1, "/old"), (2, "/gone")]
    watched = service.processor.tree
    assert set(watched.data_watches.by_path()) == {"/old", "/none", "/p", "/r"}
    assert set(watched.child_watches.by_path()) == {"/old", "/p", "/r"}


def test_children_and_numbers(client: TestedClient) -> None:
    for path in ("/a", "/a/b", "/a/b/c", "/ab"):
        client.ask(OpCode.CREATE, create(path))
    assert client.ask(OpCode.GET_CHILDREN, path_and_watch("/a")) == (Code.OK, texts(["b"]))
    assert client.ask(OpCode.GET_ALL_CHILDREN_NUMBER, text("/a")) == (Code.OK, i32(2))
    assert client.ask(OpCode.GET_ALL_CHILDREN_NUMBER, text("/")) == (Code.OK, i32(7))


def test_ephemerals_below_a_prefix(client: TestedClient) -> None:
    for path in ("/a", "/b"):
        client.ask(OpCode.CREATE, create(path, flags=1))
    assert client.ask(OpCode.GET_EPHEMERALS, text("/a")) == (Code.OK, texts(["/a"]))
    assert client.ask(OpCode.GET_EPHEMERALS, text(" / ")) == (Code.OK, texts(["/a", "/b"]))


def test_reads_in_a_multi_fail_one_by_one(client: TestedClient) -> None:
    body = multi((OpCode.GET_DATA, path_and_watch("/none")), (OpCode.GET_CHILDREN, path_and_watch("/zookeeper/quota")))
    code, answer = client.ask(OpCode.MULTI_READ, body)
    assert code == Code.OK
    assert answer.startswith(i32(-1) + b"\0" + i32(Code.NO_NODE) * 2 + i32(OpCode.GET_CHILDREN))
    assert client.ask(OpCode.MULTI_READ, multi((OpCode.CREATE, create("/x"))))[0] == Code.MARSHALLING_ERROR


def test_removing_watches(client: TestedClient) -> None:
    client.ask(OpCode.GET_DATA, path_and_watch("/", True))
    assert client.ask(OpCode.REMOVE_WATCHES, text("/") + i32(1))[0] == Code.NO_WATCHER
    assert client.ask(OpCode.CHECK_WATCHES, text("/") + i32(2))[0] == Code.OK
    assert client.ask(OpCode.REMOVE_WATCHES, text("/") + i32(3))[0] == Code.OK
    assert client.ask(OpCode.CHECK_WATCHES, text("/") + i32(3))[0] == Code.NO_WATCHER
    assert client.ask(OpCode.CHECK_WATCHES, text("/") + i32(4))[0] == Code.MARSHALLING_ERROR
    assert client.ask(OpCode.ADD_WATCH, text("/") + i32(2))[0] == Code.MARSHALLING_ERROR


def test_who_am_i(client: TestedClient) -> None:
    assert client.ask(OpCode.WHO_AM_I) == (Code.OK, i32(1) + text("ip") + text("10.0.0.1"))


def test_null_paths_and_nulls_in_paths(client: TestedClient) -> None:
    assert client.ask(OpCode.GET_DATA, path_and_watch(None))[0] == Code.MARSHALLING_ERROR
    assert client.ask(OpCode.EXISTS, path_and_watch("/a\0"))[0] == Code.BAD_ARGUMENTS
    assert client.ask(OpCode.SYNC, text(None)) == (Code.OK, i32(-1))


def test_a_stat_is_zookeepers(service: Service, client: TestedClient) -> None:
    client.ask(OpCode.CREATE, create("/a", b"abc"))
    _, stat = client.ask(OpCode.EXISTS, path_and_watch("/a"))
    zxid, now_ms = service.processor.zxid, service.clock.time_ms()
    assert struct.unpack(">qqqqiiiqiiq", stat) == (zxid, zxid, now_ms, now_ms, 0, 0, 0, 0, 3, 0, zxid)
    assert client.ask(OpCode.SET_WATCHES, i64(0) + i32(2**30))[0] == Code.MARSHALLING_ERROR
