from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NoReturn

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.network.authentication import principals as principals_module
from odradek.broker.network.authentication.principals import Principals
from odradek.broker.network.connection.connection import ANONYMOUS, Connection
from odradek.broker.security.principal_builder import AuthenticationContext, KafkaPrincipalBuilder
from odradek.broker.security.tls.tls_contexts import TlsContexts
from odradek.controller.model.broker_info import SecurityProtocol
from tests.support.certificates import Authority
from tests.support.in_process.connections.network import Link

LISTENERS = {"listeners": "X://:1,Y://:2", "listener.security.protocol.map": "X:PLAINTEXT,Y:PLAINTEXT"}


class Recorder(KafkaPrincipalBuilder):
    """A class of the operator."""

    closed: ClassVar[list[str]] = []

    def configure(self, configs: Mapping[str, str]) -> None:
        self.name = configs["my.name"]

    def build(self, context: AuthenticationContext) -> str:
        if context.client_address == "":
            raise LookupError("canary")
        return f"Robot:{self.name}-{context.listener_name}-{context.peer_name}"

    def close(self) -> None:
        self.closed.append(self.name)


SETTINGS = {
    **LISTENERS,
    "inter.broker.listener.name": "Y",
    "my.name": "m",
    "listener.name.x.my.name": "n",
    "listener.name.x.principal.builder.class": f"{__name__}:Recorder",
}


def no_tls() -> NoReturn:
    raise AssertionError("no listener has TLS")


def connection_of(
    link: Link, listener_name: str, protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
) -> Connection:
    connection = link.connection
    connection.listener_name, connection.security_protocol = listener_name, protocol
    connection.client_host = "10.0.0.1"
    return connection


def test_only_the_listener_of_the_class_asks_it(link: Link) -> None:
    principals = Principals(BrokerConfig(SETTINGS), no_tls)
    principals.load_listeners()
    connection = connection_of(link, "Y")
    principals.identify(connection)
    assert connection.principal == ANONYMOUS
    connection.listener_name = "X"
    principals.identify(connection)
    assert connection.principal == "Robot:n-X-None"


def test_the_class_knows_the_certificate(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Authority().issue("client", organization="Org").certificate.public_bytes(Encoding.DER)
    monkeypatch.setattr(principals_module, "_peer_certificate", lambda connection: certificate)
    config = BrokerConfig(SETTINGS)
    principals = Principals(config, lambda: TlsContexts(config))
    principals.load_listeners()
    connection = connection_of(link, "X", SecurityProtocol.SSL)
    principals.identify(connection)
    assert connection.principal == "Robot:n-X-CN=client,O=Org"


def test_a_client_without_a_principal_is_closed(link: Link) -> None:
    principals = Principals(BrokerConfig(SETTINGS), no_tls)
    principals.load_listeners()
    connection = connection_of(link, "X")
    connection.client_host = ""
    principals.identify(connection)
    assert link.transport.is_aborted
    assert connection.principal == ANONYMOUS


def test_an_open_listener_keeps_the_names_of_its_kerberos_clients() -> None:
    """Its mechanisms stay, too, whatever becomes of their key."""
    config = BrokerConfig(
        {
            **LISTENERS,
            "listener.security.protocol.map": "X:PLAINTEXT,Y:SASL_PLAINTEXT",
            "inter.broker.listener.name": "X",
            "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1],DEFAULT",
        }
    )
    principals = Principals(config, no_tls)
    principals.load_listeners()
    config.apply_dynamic(default={}, broker={"sasl.enabled.mechanisms": "PLAIN"})
    principals.load_listeners()
    connection = connection_of(Link(), "Y", SecurityProtocol.SASL_PLAINTEXT)
    assert principals.principal_of_user(connection, "GSSAPI", "alice@REALM") == "User:alice"


def test_the_object_of_a_closed_listener_is_closed() -> None:
    Recorder.closed.clear()
    config = BrokerConfig(SETTINGS)
    principals = Principals(config, no_tls)
    principals.load_listeners()
    config.apply_dynamic(default={}, broker={"listeners": "Y://:2"})
    principals.load_listeners()
    assert Recorder.closed == ["n"]
    config.apply_dynamic(default={}, broker={})
    principals.load_listeners()
    principals.close()
    assert Recorder.closed == ["n", "n"]


def test_an_object_that_cannot_be_closed_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(recorder: Recorder) -> None:
        recorder.closed.append(recorder.name)
        raise LookupError("it is gone")

    monkeypatch.setattr(Recorder, "close", failing)
    Recorder.closed.clear()
    principals = Principals(BrokerConfig({**SETTINGS, "principal.builder.class": f"{__name__}:Recorder"}), no_tls)
    principals.load_listeners()
    principals.close()
    assert sorted(Recorder.closed) == ["m", "n"]
    assert "Cannot close the principal builder Recorder" in caplog.text
