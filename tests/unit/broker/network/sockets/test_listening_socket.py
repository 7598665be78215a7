from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest

from odradek.broker.config.endpoint import EndPoint, SecurityProtocol
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.sockets import listening_socket
from odradek.broker.network.sockets.listening_socket import USE_OS_DEFAULT, bound_port, open_listening_socket

OPENED: list[socket.socket] = []


class _Socket(socket.socket):
    """A real socket that records the order of its set-up. `refused`: address families that this machine lacks."""

    refused: tuple[int, ...] = ()

    def __init__(self, family: int = -1, kind: int = -1, proto: int = -1, fileno: int | None = None) -> None:
        if family in self.refused:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, kind, proto, fileno)
        self.steps: list[object] = []
        OPENED.append(self)

    def setsockopt(self, *option: object) -> None:  # type: ignore[override]
        self.steps.append(option)
        super().setsockopt(*option)  # type: ignore[arg-type]

    def bind(self, address: object) -> None:
        self.steps.append("bind")
        super().bind(address)  # type: ignore[arg-type]

    def listen(self, backlog: int = 0) -> None:
        self.steps.append(("listen", backlog))
        super().listen(backlog)


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(listening_socket.socket, "socket", _Socket)
    monkeypatch.setattr(_Socket, "refused", ())
    yield
    for opened in OPENED:
        opened.close()
    OPENED.clear()


def opened(host: str | None, port: int = 0, receive_buffer_bytes: int = USE_OS_DEFAULT) -> _Socket:
    end_point = EndPoint(host, port, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
    listening = open_listening_socket(end_point, receive_buffer_bytes=receive_buffer_bytes, backlog=50)
    assert isinstance(listening, _Socket)
    return listening


def refusal(host: str | None, port: int = 0) -> str:
    """The text of the refusal. No descriptor may be left open."""
    before = {id(opened) for opened in OPENED}
    with pytest.raises(StartupError) as refused:
        opened(host, port)
    assert [opened.fileno() for opened in OPENED if id(opened) not in before and opened.fileno() >= 0] == []
    return str(refused.value)


def test_socket_listens_on_its_address_and_never_blocks() -> None:
    listening = opened("127.0.0.1")
    assert listening.getsockname() == ("127.0.0.1", bound_port(listening))
    assert bound_port(listening) > 0
    assert listening.getblocking() is False
    with pytest.raises(BlockingIOError):
        listening.accept()
    assert ("listen", 50) in listening.steps


def test_port_that_lingers_from_the_last_run_can_be_taken_again() -> None:
    assert opened("127.0.0.1").getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1


def test_receive_buffer_is_set_before_the_window_is_scaled_to_it() -> None:
    listening = opened("127.0.0.1", receive_buffer_bytes=30_000)
    buffer = (socket.SOL_SOCKET, socket.SO_RCVBUF, 30_000)
    assert listening.steps.index(buffer) < listening.steps.index(("listen", 50))


def test_receive_buffer_can_be_left_to_the_system() -> None:
    names = [step[1] for step in opened("127.0.0.1").steps if isinstance(step, tuple) and len(step) == 3]
    assert names == [socket.SO_REUSEADDR]


def test_no_host_is_every_interface() -> None:
    listening = opened(None)
    if listening.family == socket.AF_INET6:  # as on most machines
        assert listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
        assert listening.getsockname()[0] == "::"
    else:
        assert listening.getsockname()[0] == "0.0.0.0"


def test_no_host_without_ipv6_is_every_ipv4_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Socket, "refused", (socket.AF_INET6,))
    assert opened(None).getsockname()[0] == "0.0.0.0"


def test_name_with_both_kinds_of_address_means_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(listening_socket.socket, "getaddrinfo", lambda *args, **kwargs: found)
    assert opened("both.example").getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["127.0.0.1", None])
def test_port_that_is_taken_is_refused_by_name(host: str | None) -> None:
    port = bound_port(opened(host))
    shown = host or "0.0.0.0"
    assert refusal(host, port) == f"Socket server failed to bind to {shown}:{port}: Address already in use."


def test_unknown_host_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(listening_socket.socket, "getaddrinfo", unknown)
    message = "Socket server failed to bind to nobody.example:9092: Name or service not known."
    assert refusal("nobody.example", 9092) == message


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_host_that_can_be_no_name_is_refused(host: str) -> None:
    assert refusal(host).startswith(f"Socket server failed to bind to {host}:0: ")


@pytest.mark.parametrize("host", ["127.0.0.1", None])
@pytest.mark.parametrize("port", [-1, 65536])
def test_port_out_of_range_is_refused(host: str | None, port: int) -> None:
    shown = host or "0.0.0.0"
    assert refusal(host, port) == f"Socket server failed to bind to {shown}:{port}: port out of range."
