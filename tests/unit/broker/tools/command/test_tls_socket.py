from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.tools.command.socket_loop import READ, run, wait_for
from odradek.broker.tools.command.tls_socket import TlsSocket
from odradek.timer.clock import SystemClock
from tests.support.certificates import Authority

AUTHORITY = Authority()
CLOCK = SystemClock()
TIMEOUT_MS = 10_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[socket.socket]:
    """One end of a pair; at the other a thread sends back what it gets."""
    ours, theirs = socket.socketpair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(AUTHORITY.issue("broker").write_pem(tmp_path / "broker.pem"))

    def serve() -> None:
        try:
            with context.wrap_socket(theirs, server_side=True) as connection:
                while data := connection.recv(65_536):
                    connection.sendall(data)
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    ours.setblocking(False)
    yield ours
    thread.join(10)


def client(trusted: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=trusted.pem)


def test_bytes_go_and_come_back(server: socket.socket) -> None:
    async def exchange() -> bytes:
        until_ms = CLOCK.monotonic_ms() + TIMEOUT_MS
        connection = await TlsSocket.connect(server, client(AUTHORITY), "localhost", until_ms)
        with pytest.raises(BlockingIOError):
            connection.recv(10)
        assert connection.send(b"hello") == 5
        received = b""
        while len(received) < 5:
            try:
                received += connection.recv(10)
            except BlockingIOError:
                await wait_for(connection, READ, until_ms)
        connection.close()
        return received

    assert run(exchange(), CLOCK) == b"hello"


def test_a_server_that_is_not_trusted_is_refused(server: socket.socket) -> None:
    async def connect() -> None:
        await TlsSocket.connect(server, client(Authority("Other")), "localhost", CLOCK.monotonic_ms() + TIMEOUT_MS)

    with pytest.raises(ssl.SSLCertVerificationError):
        run(connect(), CLOCK)
