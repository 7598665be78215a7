"""Tokens that are checked with keys from an HTTPS server: the same with Apache Kafka, unless it does not trust it."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from odradek.broker.config.keys.sasl import VALIDATOR
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE
from odradek.broker.security.sasl.oauth.urls import ALLOWED_URLS_KEY
from tests.conformance.security.conftest import Certificates
from tests.support.certificates import Authority, Identity
from tests.support.jwt import jwks, other_rsa_key, rsa_jwk, rsa_key, signed
from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.sasl_client import authenticate, handshake

pytestmark = pytest.mark.oracle

HOST = "127.0.0.1"
MakeBroker = Callable[..., ApacheBroker | OdradekBroker]


class KeyServer:
    """Serves a set of keys, over TLS with this certificate."""

    def __init__(self, identity: Identity, directory: Path) -> None:
        self.keys = [rsa_jwk(rsa_key(), kid="first", alg="RS256", use="sig")]
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = jwks(*served.keys)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(identity.write_pem(directory / "keys.pem"))
        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://localhost:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> KeyServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class OauthBroker(NamedTuple):
    process: ApacheBroker | OdradekBroker
    port: int
    context: ssl.SSLContext

    def admits(self, token: str) -> bool:
        with RawClient(HOST, self.port, tls=self.context) as client:
            handshake(client, "OAUTHBEARER")
            answer = authenticate(client, ClientInitialResponse(token, "", {}).to_bytes())
            return bytes(answer.auth_bytes) == b"" and answer.error_code == 0


def made(make_broker: MakeBroker, certificates: Certificates, directory: Path, url: str) -> OauthBroker:
    """Trusts the authority of the tests, and asks for the keys every half second."""
    plain, port = free_port(), free_port()
    options = (
        f'ssl.truststore.type="PEM" ssl.truststore.location="{certificates.ca}" '
        'unsecuredLoginStringClaim_sub="broker"'  # with options but this one, Apache Kafka cannot log in as a client
    )
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://{HOST}:{plain},AUTH://{HOST}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_SSL",
            "listener.name.auth.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.auth.oauthbearer.sasl.jaas.config": f"{LOGIN_MODULE} required {options};",
            "listener.name.auth.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": "500",
            "sasl.oauthbearer.expected.audience": "keys",
            ALLOWED_URLS_KEY: url,
        }
    )
    process = make_broker(directory, settings)
    process.port = plain
    return OauthBroker(process, port, certificates.context())


def token(key: RSAPrivateKey, key_id: str) -> str:
    now = int(time.time())
    return signed({"sub": "alice", "iat": now, "exp": now + 300, "aud": "keys"}, key, kid=key_id)


@pytest.fixture
def server(certificates: Certificates, tmp_path: Path) -> Iterator[KeyServer]:
    with KeyServer(certificates.authority.issue("keys"), tmp_path) as running:
        yield running


def test_keys_of_a_server_and_new_ones(
    make_broker: MakeBroker, certificates: Certificates, server: KeyServer, tmp_path: Path
) -> None:
    broker = made(make_broker, certificates, tmp_path / "broker", server.url)
    broker.process.start()
    try:
        assert broker.admits(token(rsa_key(), "first"))
        assert not broker.admits(token(other_rsa_key(), "first"))
        second = token(other_rsa_key(), "second")
        assert not broker.admits(second)
        server.keys = [rsa_jwk(other_rsa_key(), kid="second", alg="RS256", use="sig")]
        eventually(lambda: broker.admits(second))
        withdrawn = token(rsa_key(), "first")
        eventually(lambda: not broker.admits(withdrawn))  # each network thread of Apache Kafka asks on its own
        broker.process.stop()
    finally:
        broker.process.close()


def test_a_server_with_the_certificate_of_another_authority_has_no_keys(
    make_broker: MakeBroker, certificates: Certificates, tmp_path: Path
) -> None:
    """Apache Kafka does not start; Odradek starts, admits nobody and asks again."""
    with KeyServer(Authority("Strangers").issue("keys"), tmp_path) as stranger:
        broker = made(make_broker, certificates, tmp_path / "broker", stranger.url)
        try:
            if broker.process.target == "apache":
                broker.process.launch()
                broker.process.wait_for_line("unable to find valid certification path")
                return
            broker.process.start()
            assert not broker.admits(token(rsa_key(), "first"))
            log = broker.process.log_text()
            assert "CERTIFICATE_VERIFY_FAILED" in log
            assert "Traceback" not in log
        finally:
            broker.process.close()
