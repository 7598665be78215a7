"""Requests that no client would send: each is answered or ends its own connection, and the service goes on."""

from __future__ import annotations

import os
import random

import pytest

from odradek.broker.zookeeper.codes import Code, OpCode
from odradek.broker.zookeeper.requests import read_requests
from odradek.broker.zookeeper.tree import watch_manager
from odradek.broker.zookeeper.tree.data_tree import _kept_acls
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
    set_watches,
    text,
    texts,
)
from tests.unit.broker.zookeeper.conftest import Service, TestedClient

ROUNDS = int(os.environ.get("ODRADEK_ZOOKEEPER_ROUNDS", "3000"))
PATHS = (
    "/",
    "",
    "/a",
    "/a/b",
    "/a/",
    "//",
    "a",
    "/zookeeper",
    "/zookeeper/config",
    "/\0",
    "/é",
    "/\U0001f600",
    "/e",
    None,
)
KINDS = [*OpCode, 0, -1, 10, 77, 2**31 - 1, -(2**31)]


def _bodies(rng: random.Random) -> list[tuple[int, bytes]]:
    path, number = rng.choice(PATHS), rng.choice((0, -1, 1, 2, 3, 2**31 - 1, -(2**31)))
    acl = [
        (
            number,
            rng.choice(("world", "digest", "ip", "auth", "x509", None)),
            rng.choice(("anyone", "a:b", "1.2.3.4/8", "", None)),
        )
    ]
    return [
        (OpCode.CREATE, create(path, b"x", rng.randrange(-1, 8), acl)),
        (OpCode.CREATE2, create(path, None, rng.randrange(8))),
        (OpCode.CREATE_TTL, create(path, b"", rng.randrange(8)) + i64(number)),
        (OpCode.CREATE_CONTAINER, create(path, b"", 4)),
        (OpCode.DELETE, path_and_version(path, number)),
        (OpCode.EXISTS, path_and_watch(path, True)),
        (OpCode.GET_DATA, path_and_watch(path, True)),
        (OpCode.SET_DATA, set_data(path, b"y" * rng.randrange(50), number)),
        (OpCode.GET_ACL, text(path)),
        (OpCode.SET_ACL, set_acl(path, acl, number)),
        (OpCode.GET_CHILDREN2, path_and_watch(path, True)),
        (OpCode.SET_WATCHES2, set_watches(number, ["/a"], ["/b"], [path or ""]) + texts([path or ""]) + texts(["/"])),
        (OpCode.ADD_WATCH, text(path) + i32(number)),
        (OpCode.REMOVE_WATCHES, text(path) + i32(number)),
        (OpCode.CHECK_WATCHES, text(path) + i32(number)),
        (OpCode.GET_EPHEMERALS, text(path)),
        (OpCode.GET_ALL_CHILDREN_NUMBER, text(path)),
        (OpCode.AUTH, auth("digest", b"\xff:" + bytes([rng.randrange(256)]))),
        (OpCode.MULTI, multi((OpCode.CREATE, create(path)), (OpCode.CHECK, path_and_version(path, number)))),
        (OpCode.MULTI_READ, multi((OpCode.GET_DATA, path_and_watch(path)))),
    ]


def _spoilt(rng: random.Random, body: bytes) -> bytes:
    spoilt = bytearray(body)
    for _ in range(rng.randrange(3)):
        if spoilt:
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    return bytes(spoilt[: rng.randrange(len(spoilt) + 1)] if rng.random() < 0.3 else spoilt)


@pytest.mark.parametrize("seed", range(3))
def test_no_request_stops_the_service(seed: int, service: Service) -> None:
    rng = random.Random(seed)
    client = service.client()
    for number in range(ROUNDS):
        kind, body = rng.choice(_bodies(rng))
        if rng.random() < 0.2:
            kind = rng.choice(KINDS)
        service.processor.request(client.client, i32(number) + i32(kind) + _spoilt(rng, body))
        service.settle()
        if client.connection.is_closed or client.client.session_id in service.ended:
            service.processor.connection_lost(client.client)
            client = service.client()
    assert service.client().ask(OpCode.PING, xid=-2)[0] == Code.OK


@pytest.mark.parametrize(("reads", "is_closed"), [(9, False), (10, True)])
def test_a_small_request_for_a_long_answer_is_not_answered(
    reads: int, is_closed: bool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_requests, "MULTI_READ_BYTES_MAX", 10_000)
    client = service.client()
    client.ask(OpCode.CREATE, create("/a", b"x" * 1000))
    body = multi(*[(OpCode.GET_DATA, path_and_watch("/a"))] * reads)
    before = len(client.connection.frames)
    service.processor.request(client.client, i32(1) + i32(OpCode.MULTI_READ) + body)
    service.settle()
    assert client.connection.is_closed is is_closed
    assert len(client.connection.frames) - before == (not is_closed)
    assert service.client().ask(OpCode.EXISTS, path_and_watch("/a"))[0] == Code.OK


@pytest.mark.parametrize("kind", [OpCode.EXISTS, OpCode.SET_WATCHES])
def test_a_client_with_too_many_watches_is_closed(
    kind: OpCode, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_manager, "WATCHES_BYTES_MAX", 1000)
    client = service.client()
    for path in ("/a", "/b", "/c", "/d"):
        body = path_and_watch(path, True) if kind is OpCode.EXISTS else set_watches(0, [], [path], [])
        service.processor.request(client.client, i32(1) + i32(kind) + body)
    service.settle()
    assert client.connection.is_closed
    service.processor.connection_lost(client.client)
    assert service.processor.tree.number_of_watches() == 0


def test_long_acls_are_not_kept_in_memory(client: TestedClient) -> None:
    _kept_acls.cache_clear()
    for number, length in enumerate((1, 100)):
        acl = [(31, "digest", f"user-{user}:x") for user in range(length)] + [(31, "world", "anyone")]
        assert client.ask(OpCode.CREATE, create(f"/{number}", acl=acl))[0] == Code.OK
        for _ in range(2):
            assert client.ask(OpCode.GET_DATA, path_and_watch(f"/{number}"))[0] == Code.OK
    assert _kept_acls.cache_info().currsize == 1
