"""The metadata service beside a real ZooKeeper: the same raw requests to both, the same bytes back.

Each test runs a script against a new server of each kind and compares every frame, errors and zxids included. Session
ids and moments differ by nature and are masked; the children of a node have no order in ZooKeeper, so no script has
a node with two children and lists them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_zookeeper import OdradekZooKeeper, running_zookeeper
from tests.support.wire.zookeeper_script import (
    OPEN,
    RawClient,
    auth,
    buf,
    create,
    i32,
    i64,
    masked,
    multi,
    path_and_version,
    path_and_watch,
    set_acl,
    set_data,
    set_watches,
    text,
    texts,
)

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = range(1, 10)
PING, GET_CHILDREN2, CHECK, MULTI, CREATE2, RECONFIG, CHECK_WATCHES, REMOVE_WATCHES = range(11, 19)
CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL, MULTI_READ = range(19, 23)
AUTH, SET_WATCHES, SASL, GET_EPHEMERALS, GET_ALL_CHILDREN_NUMBER, SET_WATCHES2, ADD_WATCH, WHO_AM_I = range(100, 108)
CLOSE_SESSION = -11
AUTH_XID, PING_XID = -4, -2

READ, WRITE, ADMIN, ALL = 1, 2, 16, 31
SETTINGS = {"4lw.commands.whitelist": "*"}

Servers = tuple[ZooKeeper, OdradekZooKeeper]


class Script:
    """One run of a script: clients of one server, and what came back, by the name of the step."""

    def __init__(self, server: ZooKeeper | OdradekZooKeeper) -> None:
        self._server = server
        self._stack = ExitStack()
        self._since_ms = int(time.time() * 1000)
        self._session_ids: list[int] = []
        self.steps: list[tuple[str, list[bytes | None]]] = []

    def client(self, **connect: object) -> RawClient:
        client = self.unconnected()
        self.note("connect", [client.connect(**connect)], client)  # type: ignore[arg-type]
        return client

    def unconnected(self) -> RawClient:
        client = RawClient(self._server.host, self._server.port)
        self._stack.callback(client.close)
        return client

    def note(self, name: str, frames: list[bytes | None], client: RawClient | None = None) -> None:
        if client is not None and client.session_id and client.session_id not in self._session_ids:
            self._session_ids.append(client.session_id)
        self.steps.append((name, [masked(frame, self._session_ids, self._since_ms) for frame in frames]))

    def ask(self, client: RawClient, name: str, kind: int, body: bytes = b"", xid: int | None = None) -> None:
        self.note(name, client.ask(kind, body, xid))

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    real = ZooKeeper(tmp_path_factory.mktemp("real"), SETTINGS)
    real.start()
    try:
        with running_zookeeper(tmp_path_factory.mktemp("service"), SETTINGS) as service:
            yield real, service
    finally:
        real.stop()


def _compare(servers: Servers, script: Callable[[Script], None]) -> None:
    runs = []
    for server in servers:
        run = Script(server)
        try:
            script(run)
        finally:
            run.close()
        runs.append(run.steps)
    expected, ours = runs
    assert [name for name, _ in ours] == [name for name, _ in expected]
    for (name, frames), (_, answer) in zip(expected, ours, strict=True):
        assert answer == frames, name


def test_nodes(servers: Servers) -> None:
    def script(run: Script) -> None:
        client = run.client()
        ask = lambda name, kind, body=b"": run.ask(client, name, kind, body)  # noqa: E731
        ask("create", CREATE, create("/nodes", b"x"))
        ask("create again", CREATE, create("/nodes"))
        ask("create without parent", CREATE, create("/nobody/a"))
        ask("create2", CREATE2, create("/nodes/two", None))
        ask("exists", EXISTS, path_and_watch("/nodes"))
        ask("exists not", EXISTS, path_and_watch("/nodes/none"))
        ask("get", GET_DATA, path_and_watch("/nodes"))
        ask("get null", GET_DATA, path_and_watch("/nodes/two"))
        ask("get not", GET_DATA, path_and_watch("/nodes/none"))
        ask("set", SET_DATA, set_data("/nodes", b"y", 0))
        ask("set in the wrong version", SET_DATA, set_data("/nodes", b"z", 0))
        ask("set null", SET_DATA, set_data("/nodes", None))
        ask("set not", SET_DATA, set_data("/nodes/none", b"z"))
        ask("children", GET_CHILDREN, path_and_watch("/nodes"))
        ask("children2", GET_CHILDREN2, path_and_watch("/nodes"))
        ask("children not", GET_CHILDREN, path_and_watch("/nodes/none"))
        ask("number below", GET_ALL_CHILDREN_NUMBER, text("/nodes"))
        ask("number below not", GET_ALL_CHILDREN_NUMBER, text("/nodes/none"))
        ask("delete with children", DELETE, path_and_version("/nodes"))
        ask("delete in the wrong version", DELETE, path_and_version("/nodes/two", 3))
        ask("delete", DELETE, path_and_version("/nodes/two"))
        ask("delete again", DELETE, path_and_version("/nodes/two"))
        ask("number of created and deleted", EXISTS, path_and_watch("/nodes"))
        ask("sync", SYNC, text("/nodes"))
        ask("sync null", SYNC, text(None))
        ask("the root", EXISTS, path_and_watch("/zookeeper"))
        ask("the root's ACL", GET_ACL, text("/"))
        ask("config", GET_DATA, path_and_watch("/zookeeper/config"))
        ask("config's ACL", GET_ACL, text("/zookeeper/config"))
        ask("config may not be written", SET_DATA, set_data("/zookeeper/config", b""))
        ask("delete at the end", DELETE, path_and_version("/nodes"))
        run.ask(client, "ping", PING, b"", PING_XID)
        run.ask(client, "close", CLOSE_SESSION)
        run.note("end", list(client.read_to_the_end()))

    _compare(servers, script)


def test_sequential_ephemeral_and_container_nodes(servers: Servers) -> None:
    def script(run: Script) -> None:
        client = run.client()
        ask = lambda name, kind, body=b"": run.ask(client, name, kind, body)  # noqa: E731
        ask("parent", CREATE, create("/kinds"))
        ask("sequential", CREATE, create("/kinds/s-", flags=2))
        ask("sequential without a name", CREATE2, create("/kinds/", flags=2))
        ask("ephemeral sequential", CREATE2, create("/kinds/e-", flags=3))
        ask("ephemeral", CREATE, create("/kinds/e", flags=1))
        ask("below an ephemeral", CREATE, create("/kinds/e/child"))
        ask("its stat", EXISTS, path_and_watch("/kinds/e"))
        ask("ephemerals", GET_EPHEMERALS, text("/kinds/e-"))
        ask("ephemerals elsewhere", GET_EPHEMERALS, text("/other"))
        ask("container", CREATE_CONTAINER, create("/kinds/c", flags=4))
        ask("its stat", EXISTS, path_and_watch("/kinds/c"))
        ask("below a container", CREATE, create("/kinds/c/child"))
        ask("container flag in create", CREATE, create("/kinds/not-c", flags=4))
        ask("its stat", EXISTS, path_and_watch("/kinds/not-c"))
        ask("TTL", CREATE_TTL, create("/kinds/ttl", flags=5) + i64(1000))
        ask("TTL for a node without", CREATE_TTL, create("/kinds/ttl", flags=0) + i64(1000))
        ask("TTL flag in create", CREATE, create("/kinds/ttl", flags=6))
        ask("flags that are none", CREATE, create("/kinds/x", flags=7))
        ask("delete a container as a client", DELETE_CONTAINER, path_and_version("/kinds/c"))
        ask("reconfig", RECONFIG, text(None) + text(None) + text(None) + i64(-1))

    _compare(servers, script)


@pytest.mark.parametrize(
    "path",
    ["", "a", "/", "//", "/a/", "/a//b", "/.", "/a/..", "/a\0", "/a\x01", "/a\uf000", "/\u00e9", "/zookeeper", None],
)
def test_paths(servers: Servers, path: str | None) -> None:
    def script(run: Script) -> None:
        client = run.client()
        for name, kind, body in (
            ("create", CREATE, create(path, b"", 0)),
            ("create sequential", CREATE2, create(path, b"", 3)),
            ("get", GET_DATA, path_and_watch(path)),
            ("exists", EXISTS, path_and_watch(path)),
            ("number", GET_ALL_CHILDREN_NUMBER, text("/zookeeper" if path in ("", "/") else path)),
            ("get ACL", GET_ACL, text(path)),
            ("set ACL", SET_ACL, set_acl(path, OPEN, 77)),
            ("set", SET_DATA, set_data(path, b"", 77)),
            ("check", MULTI, multi((CHECK, path_and_version(path, 77))))
            if path is not None
            else ("sync", SYNC, text("")),
            ("delete", DELETE, path_and_version(path)),
            ("check watches", CHECK_WATCHES, path_and_version(path, 3)),
        ):
            run.ask(client, f"{name} {path!r}", kind, body)

    _compare(servers, script)


def test_watches(servers: Servers) -> None:
    def script(run: Script) -> None:
        client, other = run.client(), run.client()
        ask = lambda name, kind, body=b"": run.ask(client, name, kind, body)  # noqa: E731
        ask("watch for a node", EXISTS, path_and_watch("/watched", True))
        ask("event before the answer", CREATE, create("/watched"))
        ask("only once", SET_DATA, set_data("/watched", b"1"))
        ask("watch data", GET_DATA, path_and_watch("/watched", True))
        ask("watch children", GET_CHILDREN, path_and_watch("/watched", True))
        ask("check watches of data", CHECK_WATCHES, text("/watched") + i32(2))
        ask("check watches of children", CHECK_WATCHES, text("/watched") + i32(1))
        ask("check any", CHECK_WATCHES, text("/watched") + i32(3))
        ask("check none", CHECK_WATCHES, text("/none") + i32(3))
        ask("check what is no type", CHECK_WATCHES, text("/watched") + i32(4))
        run.ask(other, "another client's change", CREATE, create("/watched/child"))
        run.note("event", [client.read()])
        ask("watch again", GET_CHILDREN, path_and_watch("/watched", True))
        ask("watch the child", EXISTS, path_and_watch("/watched/child", True))
        run.ask(
            other,
            "multi fires after all",
            MULTI,
            multi((DELETE, path_and_version("/watched/child")), (DELETE, path_and_version("/watched"))),
        )
        run.note("events", [client.read(), client.read(), client.read()])
        ask("no watch where there is no node", GET_DATA, path_and_watch("/watched", True))
        ask("no event", CREATE, create("/watched"))
        ask("remove none", REMOVE_WATCHES, text("/watched") + i32(3))
        ask("watch once more", GET_DATA, path_and_watch("/watched", True))
        ask("remove of the wrong type", REMOVE_WATCHES, text("/watched") + i32(1))
        ask("remove", REMOVE_WATCHES, text("/watched") + i32(2))
        ask("no event", SET_DATA, set_data("/watched", b"2"))
        ask("persistent", ADD_WATCH, text("/watched") + i32(0))
        ask("first event", SET_DATA, set_data("/watched", b"3"))
        ask("second event", SET_DATA, set_data("/watched", b"4"))
        ask("of children too", CREATE, create("/watched/child"))
        ask("recursive", ADD_WATCH, text("/watched") + i32(1))
        ask("below", CREATE, create("/watched/child/below"))
        ask("changed below", SET_DATA, set_data("/watched/child/below", b"5"))
        ask("deleted below", DELETE, path_and_version("/watched/child/below"))
        ask("mode that is none", ADD_WATCH, text("/watched") + i32(2))
        ask("remove recursive", REMOVE_WATCHES, text("/watched") + i32(3))
        ask("no event", DELETE, path_and_version("/watched/child"))
        ask(
            "set watches",
            SET_WATCHES,
            set_watches(0, ["/watched", "/none"], ["/watched", "/none2"], ["/watched", "/none3"]),
        )
        ask(
            "set watches 2",
            SET_WATCHES2,
            set_watches(1 << 40, ["/watched"], [], ["/watched"]) + texts(["/watched"]) + texts([]),
        )
        ask("event of a persistent watch", SET_DATA, set_data("/watched", b"6"))
        ask("deleted", DELETE, path_and_version("/watched"))

    _compare(servers, script)


def test_acls(servers: Servers) -> None:
    def script(run: Script) -> None:
        client, other = run.client(), run.client()
        ask = lambda name, kind, body=b"": run.ask(client, name, kind, body)  # noqa: E731
        digest = (ALL, "digest", "bob:5D6WkOKTTzZ5Q8CjJYJ6TZ2Xnq8=")
        ask("no ACL", CREATE, create("/acl", acl=[]))
        ask("null ACL", CREATE, create("/acl", acl=None))
        ask("auth without proof", CREATE, create("/acl", acl=[(ALL, "auth", "")]))
        for name in ("1.2.3.4", "1.2.3.4/8", "1.2.3.4/33", "1.2.3", "1.2.3.256", "x", "::1"):
            ask(f"ip {name}", CREATE2, create("/ip-", flags=3, acl=[(ALL, "ip", name)]))
        for name in ("a:b", "a", "a:b:c", ":", "a:"):
            ask(f"digest {name}", CREATE2, create("/digest-", flags=3, acl=[(ALL, "digest", name)]))
        for scheme in ("x509", "sasl", "super", "world", None):
            ask(f"scheme {scheme}", CREATE, create("/acl", acl=[(ALL, scheme, "bob")]))
        run.ask(client, "auth digest", AUTH, auth("digest", b"alice:secret"), AUTH_XID)
        run.ask(client, "auth ip", AUTH, auth("ip", b""), AUTH_XID)
        ask(
            "auth expanded",
            CREATE2,
            create("/acl", acl=[(ALL, "auth", ""), (READ, "world", "anyone"), (READ, "world", "anyone")]),
        )
        ask("get ACL", GET_ACL, text("/acl"))
        run.ask(other, "get ACL without admin", GET_ACL, text("/acl"))
        run.ask(other, "may read", GET_DATA, path_and_watch("/acl", True))
        run.ask(other, "may not write", SET_DATA, set_data("/acl", b"x"))
        run.ask(other, "may not create", CREATE, create("/acl/x"))
        run.ask(other, "may not set ACL", SET_ACL, set_acl("/acl", OPEN))
        run.ask(
            other,
            "may not check in a multi",
            MULTI,
            multi((SET_DATA, set_data("/acl", b"x")), (CREATE, create("/acl/y"))),
        )
        ask("set ACL in the wrong version", SET_ACL, set_acl("/acl", OPEN, 5))
        ask("set ACL", SET_ACL, set_acl("/acl", [(ALL, "auth", ""), digest], 0))
        ask("its version", GET_ACL, text("/acl"))
        ask("bad ACL", SET_ACL, set_acl("/acl", []))
        ask("ACL of no node", GET_ACL, text("/none"))
        for name, kind, body in (
            ("get", GET_DATA, path_and_watch("/acl")),
            ("exists", EXISTS, path_and_watch("/acl")),
            ("children", GET_CHILDREN2, path_and_watch("/acl")),
            ("number", GET_ALL_CHILDREN_NUMBER, text("/acl")),
            ("ACL", GET_ACL, text("/acl")),
            (
                "multi read",
                MULTI_READ,
                multi((GET_DATA, path_and_watch("/acl")), (GET_CHILDREN, path_and_watch("/zookeeper/quota"))),
            ),
        ):
            run.ask(other, f"no right: {name}", kind, body)
        ask("the event goes nowhere", SET_DATA, set_data("/acl", b"secret"))
        run.ask(other, "no event", PING, b"", PING_XID)
        ask("child", CREATE, create("/acl/child"))
        run.ask(other, "may not delete", DELETE, path_and_version("/acl/child"))
        run.ask(other, "auth fails", AUTH, auth("x509", b""), AUTH_XID)
        run.note("end", list(other.read_to_the_end()))
        ask("delete", MULTI, multi((DELETE, path_and_version("/acl/child")), (DELETE, path_and_version("/acl"))))

    _compare(servers, script)


def test_multi(servers: Servers) -> None:
    def script(run: Script) -> None:
        client = run.client()
        ask = lambda name, kind, body=b"": run.ask(client, name, kind, body)  # noqa: E731
        ask("nothing", MULTI, multi())
        ask(
            "all",
            MULTI,
            multi(
                (CREATE, create("/multi")),
                (CREATE2, create("/multi/2-", flags=3)),
                (SET_DATA, set_data("/multi", b"x", 0)),
                (CHECK, path_and_version("/multi", 1)),
                (DELETE, path_and_version("/multi/2-0000000000")),
                (CREATE_CONTAINER, create("/multi/c", flags=4)),
            ),
        )
        ask(
            "none",
            MULTI,
            multi(
                (CREATE, create("/multi/a")),
                (CHECK, path_and_version("/multi", 7)),
                (DELETE, path_and_version("/multi")),
            ),
        )
        ask("nothing was done", EXISTS, path_and_watch("/multi/a"))
        ask(
            "the sequence goes on",
            MULTI,
            multi((CREATE2, create("/multi/s-", flags=2)), (CREATE2, create("/multi/s-", flags=2))),
        )
        ask("TTL", MULTI, multi((CREATE_TTL, create("/multi/ttl", flags=5) + i64(1000))))
        ask("a read", MULTI, multi((GET_DATA, path_and_watch("/multi"))))
        ask("a read and a write", MULTI, multi((GET_DATA, path_and_watch("/multi")), (CREATE, create("/multi/b"))))
        ask("an operation that is none", MULTI, multi((77, b"")))
        ask("flags that are none", MULTI, multi((CREATE, create("/multi/x", flags=9))))
        ask("set ACL in a multi", MULTI, multi((SET_ACL, set_acl("/multi", OPEN))))
        ask(
            "reads",
            MULTI_READ,
            multi(
                (GET_DATA, path_and_watch("/multi")),
                (GET_CHILDREN, path_and_watch("/multi/c")),
                (GET_DATA, path_and_watch("/none")),
            ),
        )
        ask("a write in reads", MULTI_READ, multi((CREATE, create("/multi/z"))))
        ask("no reads", MULTI_READ, multi())
        ask("zxid", EXISTS, path_and_watch("/multi"))

    _compare(servers, script)


def test_bytes_that_are_no_request(servers: Servers) -> None:
    def script(run: Script) -> None:
        client = run.client()
        for name, kind, body in (
            ("create: nothing", CREATE, b""),
            ("create: a length beyond the end", CREATE, i32(1000)),
            ("create: a negative length", CREATE, i32(-2)),
            ("create: many ACLs", CREATE, text("/junk") + buf(b"") + i32(2**31 - 1)),
            ("get: nothing", GET_DATA, b""),
            ("get: no flag", GET_DATA, text("/")),
            ("multi: nothing", MULTI, b""),
            ("set watches: many", SET_WATCHES, i64(0) + i32(2**30)),
            ("malformed UTF-8", EXISTS, buf(b"/\xff\xfe") + b"\0"),
            ("more than a request", EXISTS, path_and_watch("/zookeeper") + b"junk"),
            ("ephemerals: nothing", GET_EPHEMERALS, b""),
            ("whoAmI with junk", SYNC, b""),
        ):
            run.ask(client, name, kind, body)
        run.ask(client, "SASL without SASL", SASL, buf(b""))
        run.ask(client, "still served", EXISTS, path_and_watch("/zookeeper"))
        run.ask(client, "unknown type", 77, b"")
        run.note("closed", list(client.read_to_the_end()))
        short = run.client()
        short.send(b"\0\0")
        run.note("a header that is too short", list(short.read_to_the_end()))
        for name, raw in (
            ("too long", i32(0xFFFFF + 1)),
            ("negative", i32(-5)),
            ("no connect request", i32(4) + b"junk"),
        ):
            junk = run.unconnected()
            junk.send_bytes(raw)
            run.note(name, list(junk.read_to_the_end()))

    _compare(servers, script)


def test_sessions(servers: Servers) -> None:
    def script(run: Script) -> None:
        brief = run.client(timeout_ms=1)
        brief.send(i32(1) + i32(CLOSE_SESSION))
        list(brief.read_to_the_end())  # it is closed or expires first, which is one transaction either way
        first = run.client()
        run.client(timeout_ms=10_000_000)
        run.client(is_old=True)
        run.ask(first, "ephemeral", CREATE, create("/session", flags=1))
        again = run.unconnected()
        run.note("back", [again.connect(20_000, first.session_id, first.password)], again)
        run.note("the first connection ends", list(first.read_to_the_end()))
        run.ask(again, "the node is there", EXISTS, path_and_watch("/session"))
        wrong = run.unconnected()
        run.note("an unknown session", [wrong.connect(4000, 0x100012345678, bytes(16))])
        run.note("end", list(wrong.read_to_the_end()))
        ahead = run.unconnected()
        run.note("a zxid that was not yet", [ahead.connect(4000, zxid=1 << 40)])
        run.ask(again, "close", CLOSE_SESSION)
        run.note("end", list(again.read_to_the_end()))
        late = run.unconnected()
        run.note("too late", [late.connect(4000, first.session_id, first.password)])
        other = run.client()
        run.ask(other, "the node has gone", EXISTS, path_and_watch("/session"))

    _compare(servers, script)


def test_who_am_i(servers: Servers) -> None:
    def script(run: Script) -> None:
        client = run.client()
        run.ask(client, "address", WHO_AM_I)
        run.ask(client, "auth", AUTH, auth("digest", b"alice:secret"), AUTH_XID)
        frames = client.ask(WHO_AM_I)
        assert frames[0] is not None
        run.note("both, in any order", [bytes(sorted(frames[0]))])

    _compare(servers, script)


@pytest.mark.parametrize("word", [b"ruok", b"isro", b"xxxx", b"srst", b"crst"])
def test_four_letter_words(servers: Servers, word: bytes) -> None:
    def script(run: Script) -> None:
        client = run.unconnected()
        client.send_bytes(word)
        run.note(word.decode(), [client.read_text()])

    _compare(servers, script)
