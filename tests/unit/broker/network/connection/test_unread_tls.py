from __future__ import annotations

import ssl
from pathlib import Path
from typing import cast

import pytest

from odradek.broker.network.connection.unread_tls import READ_BYTES, unread_tls_bytes
from odradek.controller.model.broker_info import SecurityProtocol
from tests.support.certificates import Authority
from tests.support.in_process.connections.network import PRODUCE, Handlers, Link, request


class Tls:
    """A server's side of TLS, as a transport has it, and a client."""

    def __init__(self, directory: Path) -> None:
        authority = Authority()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.issue("localhost").write_pem(directory / "server.pem"))
        trusted = ssl.create_default_context(cafile=str(authority.write_pem(directory / "ca.pem")))
        trusted.check_hostname = False
        self._to_server, self._to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self._to_server, self._to_client, server_side=True)
        self._client = trusted.wrap_bio(self._to_client, self._to_server)
        for side in (self._client, self.server, self._client, self.server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue

    def send(self, data: bytes, *, without: int = 0) -> None:
        """The client sends it; the last `without` bytes of the last record are lost."""
        self._client.write(data)
        sent = self._to_server.read()
        self._to_server.write(sent[: len(sent) - without])

    def close_notify(self) -> None:
        with pytest.raises(ssl.SSLWantReadError):
            self._client.unwrap()

    def get_extra_info(self, name: str) -> ssl.SSLObject:
        assert name == "ssl_object"
        return self.server


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return Tls(tmp_path)


def test_what_was_sent_is_read(tls: Tls) -> None:
    assert unread_tls_bytes(tls) == b""  # type: ignore[arg-type]
    tls.send(bytes(3 * READ_BYTES))
    assert unread_tls_bytes(tls) == bytes(3 * READ_BYTES)  # type: ignore[arg-type]
    tls.send(b"last")
    tls.close_notify()
    assert unread_tls_bytes(tls) == b"last"  # type: ignore[arg-type]
    assert unread_tls_bytes(tls) == b""  # type: ignore[arg-type]


def test_a_part_of_a_record_is_left_out(tls: Tls) -> None:
    tls.send(b"first")
    tls.send(b"second", without=1)
    assert unread_tls_bytes(tls) == b"first"  # type: ignore[arg-type]


def test_requests_that_were_not_read_before_the_end_are_applied(tls: Tls) -> None:
    link = Link(Handlers())
    connection, owner = link.connection, cast("Handlers", link.owner)
    connection.security_protocol = SecurityProtocol.SSL
    link.transport.get_extra_info = tls.get_extra_info  # type: ignore[method-assign,assignment]
    tls.send(request(PRODUCE, 5) + request(PRODUCE, 6))
    connection.connection_lost(None)
    assert owner.applied == [5, 6]
