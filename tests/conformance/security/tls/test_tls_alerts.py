"""A broker as a client of TLS tells the other end why it refuses its certificate, on both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import uvloop

from odradek.broker.inter_broker.socket_links import connect
from odradek.broker.security.tls.settings import TlsSettings
from odradek.broker.security.tls.ssl_factory import SslFactory
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from tests.conformance.security.conftest import Certificates
from tests.support.certificates import Authority, Identity, one_line

if TYPE_CHECKING:
    from odradek.broker.network.frames.answer_receiver import AnswerReceiver

TIMEOUT_S = 10
Run = Callable[[Coroutine[object, object, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


class Leaving(asyncio.Protocol):
    """Ends the connection as soon as it is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def client_context(trusted: str) -> ssl.SSLContext:
    settings = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": one_line(trusted)}
    return SslFactory(TlsSettings.of_client(settings), is_server=False).client_context


def seen_by_the_other_end(run: Run, identity: Identity, directory: Path, trusted: str) -> str:
    """ "connected", or the alert that the broker has sent to a server with this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.write_pem(directory / "server.pem"))
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, ThreadPoolExecutor(1) as pool:

        def serve() -> str:
            accepted, _ = listening.accept()
            accepted.settimeout(TIMEOUT_S)
            try:
                with context.wrap_socket(accepted, server_side=True) as connection:
                    connection.recv(1)
            except ssl.SSLError as error:
                return str(error.reason)
            except ConnectionResetError:
                pass
            return "connected"

        async def connect_once() -> None:
            end_point = EndPoint("localhost", listening.getsockname()[1], "TLS", SecurityProtocol.SSL)
            await connect(end_point, lambda: cast("AnswerReceiver", Leaving()), client_context(trusted))
            await asyncio.sleep(0.05)  # the loop closes the connection

        served = pool.submit(serve)
        with suppress(ssl.SSLCertVerificationError):
            run(connect_once())
        return served.result(TIMEOUT_S)


def test_alerts(run: Run, certificates: Certificates, tmp_path: Path) -> None:
    authority = certificates.authority
    expired = authority.issue("broker", days=-1, began_days_ago=2)
    elsewhere = authority.issue("broker", hosts=("elsewhere",))
    revoked = authority.issue("broker")
    for identity, trusted, seen in (
        (certificates.broker, authority.pem, "connected"),
        (certificates.broker, Authority("Other CA").pem, "TLSV1_ALERT_UNKNOWN_CA"),
        (expired, authority.pem, "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
        (revoked, authority.pem + authority.revoke(revoked), "SSLV3_ALERT_CERTIFICATE_REVOKED"),
        (elsewhere, authority.pem, "SSLV3_ALERT_BAD_CERTIFICATE"),
    ):
        assert seen_by_the_other_end(run, identity, tmp_path, trusted) == seen


def test_a_port_without_a_listener(run: Run, certificates: Certificates) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    end_point = EndPoint("127.0.0.1", port, "TLS", SecurityProtocol.SSL)

    async def connect_once() -> None:
        with pytest.raises(ConnectionRefusedError):
            await connect(end_point, lambda: pytest.fail("it is connected"), client_context(certificates.authority.pem))

    run(connect_once())
