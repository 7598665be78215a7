from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from odradek.broker.network.sockets import direct_socket
from odradek.broker.network.sockets.direct_socket import DuplicatedSocket


class _Poller:
    """The part of an event loop that watches descriptors; refuses the uses that epoll gets wrong."""

    def __init__(self) -> None:
        self.writers: dict[int, Callable[[], None]] = {}
        self.added = 0

    def add_writer(self, fd: int, callback: Callable[[], None]) -> None:
        os.fstat(fd)
        assert fd not in self.writers
        self.writers[fd] = callback
        self.added += 1

    def remove_writer(self, fd: int) -> None:
        os.fstat(fd)  # a number that is closed may belong to another file by now
        del self.writers[fd]

    def wake(self) -> None:
        (callback,) = self.writers.values()
        callback()


class _Pair:
    """A transport's socket, its second descriptor and the peer."""

    def __init__(self) -> None:
        self.original, self.peer = socket.socketpair()
        self.original.setblocking(False)  # as every transport does
        self.original.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.poller = _Poller()
        transport = SimpleNamespace(get_extra_info={"socket": self.original}.get)
        self.direct = DuplicatedSocket(self.poller, transport)  # type: ignore[arg-type]

    def fill(self) -> int:
        total = 0
        try:
            while True:
                total += self.direct.send(bytes(1024), more=False)
        except BlockingIOError:
            return total


@pytest.fixture
def pair() -> Iterator[_Pair]:
    pair = _Pair()
    yield pair
    pair.direct.close()
    pair.original.close()
    pair.peer.close()


@pytest.fixture
def file() -> Iterator[int]:
    fd = os.memfd_create("segment")
    os.write(fd, b"0123456789")
    yield fd
    os.close(fd)


def test_descriptor_that_is_kept_for_the_broker_is_given_back(pair: _Pair) -> None:
    transport = SimpleNamespace(get_extra_info={"socket": pair.original}.get)
    free = os.dup(pair.original.fileno())
    os.close(free)
    with pytest.raises(OSError, match="Too many open files"):
        DuplicatedSocket(pair.poller, transport, fd_limit=free)  # type: ignore[arg-type]
    DuplicatedSocket(pair.poller, transport, fd_limit=free + 1).close()  # type: ignore[arg-type]


def test_both_ways_of_sending_reach_the_peer_of_the_transport(pair: _Pair, file: int) -> None:
    assert pair.direct.send(memoryview(b"head "), more=True) == 5
    assert pair.direct.sendfile(file, 2, 5) == 5
    pair.original.send(b" tail")
    assert pair.peer.recv(100) == b"head 23456 tail"


def test_sendfile_keeps_the_position_of_the_file_and_returns_0_at_its_end(pair: _Pair, file: int) -> None:
    os.lseek(file, 3, os.SEEK_SET)
    assert pair.direct.sendfile(file, 8, 100) == 2
    assert pair.direct.sendfile(file, 10, 100) == 0
    assert os.lseek(file, 0, os.SEEK_CUR) == 3


def test_full_socket_blocks_neither_way_of_sending(pair: _Pair, file: int) -> None:
    sent = pair.fill()
    with pytest.raises(BlockingIOError):
        pair.direct.send(b"x", more=False)
    with pytest.raises(BlockingIOError):
        pair.direct.sendfile(file, 0, 10)
    assert len(pair.peer.recv(sent + 1)) == sent


def test_msg_more_is_set_if_more_bytes_follow(pair: _Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[int] = []

    class _Socket(socket.socket):
        def send(self, data: bytes | memoryview, flags_given: int = 0, /) -> int:
            flags.append(flags_given)
            return len(data)

    monkeypatch.setattr(direct_socket.socket, "socket", _Socket)
    transport = SimpleNamespace(get_extra_info={"socket": pair.original}.get)
    direct = DuplicatedSocket(pair.poller, transport)  # type: ignore[arg-type]
    direct.send(b"x", more=True)
    direct.send(b"x", more=False)
    direct.close()
    assert flags == [socket.MSG_DONTWAIT | socket.MSG_MORE, socket.MSG_DONTWAIT]


def test_closing_leaves_the_transports_socket_open(pair: _Pair) -> None:
    pair.direct.close()
    pair.original.send(b"still here")
    assert pair.peer.recv(100) == b"still here"
    pair.original.close()
    assert pair.peer.recv(100) == b""  # and keeps no descriptor of it


def test_waiting_ends_with_one_call(pair: _Pair) -> None:
    calls: list[str] = []
    pair.direct.wait_writable(lambda: calls.append("writable"))
    assert calls == []
    pair.poller.wake()
    assert calls == ["writable"]
    assert pair.poller.writers == {}


def test_waiting_again_in_the_call_keeps_the_watcher(pair: _Pair) -> None:
    calls: list[int] = []

    def writable() -> None:
        calls.append(len(calls))
        if len(calls) < 3:
            pair.direct.wait_writable(writable)

    pair.direct.wait_writable(writable)
    for _ in range(3):
        pair.poller.wake()
    assert calls == [0, 1, 2]
    assert pair.poller.added == 1
    assert pair.poller.writers == {}


def test_closing_ends_the_waiting_first(pair: _Pair) -> None:
    pair.direct.wait_writable(lambda: pytest.fail("called after the close"))
    pair.direct.close()  # the poller looks whether the descriptor is still open
    assert pair.poller.writers == {}
    pair.direct.close()


def test_closing_in_the_call_ends_the_waiting(pair: _Pair) -> None:
    pair.direct.wait_writable(pair.direct.close)
    pair.poller.wake()
    assert pair.poller.writers == {}
