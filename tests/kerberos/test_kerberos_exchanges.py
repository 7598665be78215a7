"""Exchanges that real clients do not make, one message after the other, and listeners that cannot start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.kerberos.conftest import FOREIGN, KerberosBroker
from tests.support.kerberos.kdc import REALM, Kdc
from tests.support.kerberos.settings import BROKER, HOST, keytab_jaas, listener_settings
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.sasl_client import authenticate, handshake, log_in

if TYPE_CHECKING:
    from odradek.broker.security.sasl.kerberos.exchanges import InitiatorExchange

pytestmark = pytest.mark.kerberos

REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"


def exchange_of(kdc: Kdc, service: str = "kafka") -> InitiatorExchange:
    """Alice's side of an exchange."""
    from odradek.broker.security.sasl.kerberos.exchanges import InitiatorExchange
    from odradek.broker.security.sasl.kerberos.krb5_login import Krb5Login
    from odradek.broker.security.sasl.kerberos.security_contexts import make_initiator

    keytab = kdc.keytab("raw", "alice")
    login = Krb5Login(f"alice@{REALM}", service, True, str(keytab), False, None)
    return InitiatorExchange(lambda: make_initiator(login, HOST))


@pytest.fixture
def client(broker: KerberosBroker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", broker.sasl_port) as one:
        yield one


def refusals(broker: KerberosBroker) -> list[str]:
    return re.findall(r"Failed authentication with .*", broker.process.log_text())


def is_served(client: RawClient) -> bool:
    answer: Any = client.call(MetadataRequest(topics=[]), 8)
    return bool(answer.brokers)


def test_a_session_lasts_as_long_as_the_listener_says(client: RawClient, kdc: Kdc) -> None:
    answer = log_in(client, "GSSAPI", exchange_of(kdc))
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    assert answer.session_lifetime_ms == 3_600_000, "the ticket ends earlier"
    assert is_served(client)
    again = log_in(client, "GSSAPI", exchange_of(kdc))
    assert (again.error_code, again.session_lifetime_ms) == (0, 3_600_000)
    assert is_served(client)


@pytest.mark.parametrize("has_handshake", [True, False])
def test_bare_tokens(client: RawClient, kdc: Kdc, has_handshake: bool) -> None:
    """After SaslHandshake v0, and of clients of Kafka 0.9, which begin with a token."""
    if has_handshake:
        client.call(SaslHandshakeRequest(mechanism="GSSAPI"), 0)
    exchange, challenge = exchange_of(kdc), b""
    while not exchange.is_complete:
        response = exchange.evaluate_challenge(challenge)
        assert response is not None
        client.send_frame(response)
        if not exchange.is_complete:  # the last message has no answer
            challenge = client.receive_frame()
    assert is_served(client)


def test_a_replayed_token_closes_the_connection_without_an_answer(
    client: RawClient, broker: KerberosBroker, kdc: Kdc
) -> None:
    token = exchange_of(kdc).evaluate_challenge(b"")
    assert token is not None
    handshake(client, "GSSAPI")
    assert authenticate(client, token).error_code == 0
    before = refusals(broker)
    with RawClient("127.0.0.1", broker.sasl_port) as other:
        handshake(other, "GSSAPI")
        with pytest.raises(ConnectionClosedError):
            authenticate(other, token)
    eventually(lambda: "Request is a replay" in broker.process.log_text())
    assert refusals(broker) == before


def test_a_ticket_for_another_service_is_refused(client: RawClient, broker: KerberosBroker, kdc: Kdc) -> None:
    before = len(refusals(broker))
    answer = log_in(client, "GSSAPI", exchange_of(kdc, FOREIGN.partition("/")[0]))
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED)
    assert client.awaits_close()
    (line,) = refusals(broker)[before:]
    assert REFUSED in line
    assert FOREIGN in line, "the log says which service it was"


@pytest.mark.parametrize("token", [b"", b"\x60\x82\x01\x02 no token", b"x" * 1000])
def test_what_is_no_token_is_refused(client: RawClient, broker: KerberosBroker, token: bytes) -> None:
    before = len(refusals(broker))
    handshake(client, "GSSAPI")
    assert authenticate(client, token).error_message == REFUSED
    assert client.awaits_close()
    assert len(refusals(broker)) == before + 1


def test_new_keys_of_the_broker_count_without_a_restart(kdc: Kdc, tmp_path: Path) -> None:
    principal = f"changed/{HOST}"
    kdc.add(principal)
    port, sasl_port = free_port(), free_port()
    jaas = keytab_jaas(kdc.keytab("changed", principal), principal)
    settings = listener_settings(port, sasl_port, jaas) | {"sasl.kerberos.service.name": "changed"}
    broker = OdradekBroker(tmp_path / "broker", settings, port)
    broker.start()
    try:
        kdc.change_keys(principal)
        with RawClient("127.0.0.1", sasl_port) as client:
            assert log_in(client, "GSSAPI", exchange_of(kdc, "changed")).error_message == REFUSED
        kdc.keytab("changed", principal)
        with RawClient("127.0.0.1", sasl_port) as client:
            assert log_in(client, "GSSAPI", exchange_of(kdc, "changed")).error_code == 0
        broker.stop_cleanly()
    finally:
        broker.close()


def test_a_keytab_without_the_principal_refuses_the_start(kdc: Kdc, tmp_path: Path) -> None:
    for keytab in (kdc.keytab("of-alice", "alice"), tmp_path / "missing.keytab"):
        port, sasl_port = free_port(), free_port()
        settings = listener_settings(port, sasl_port, keytab_jaas(keytab, BROKER))
        broker = OdradekBroker(tmp_path / keytab.stem, settings, port)
        broker.launch()
        assert broker.wait_for_end() != 0
        log = broker.log_text()
        assert f"GSSAPI cannot use the keytab {keytab} for {BROKER}@{REALM}: " in log
        assert "Traceback" not in log


def test_apis_before_authentication(client: RawClient) -> None:
    handshake(client, "GSSAPI")
    client.send(MetadataRequest(topics=[]), 8)
    with pytest.raises(ConnectionClosedError):
        client.receive(ApiKey.METADATA, 8)
