from __future__ import annotations

import ssl

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.security.tls.tls_contexts import PrincipalRefused, TlsContexts
from odradek.storage.config.config_def import ConfigError
from tests.support.certificates import Authority, Identity, one_line

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker")
CLIENT = AUTHORITY.issue("client", organization="Org, Ltd")


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate_pem)


def stores(identity: Identity, prefix: str = "") -> dict[str, str]:
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.certificate.chain": one_line(identity.chain_pem),
        f"{prefix}ssl.keystore.key": one_line(identity.key_pem()),
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.certificates": one_line(AUTHORITY.pem),
    }


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "listeners": "SSL://:9093,CLIENTS://:9094",
            "listener.security.protocol.map": "SSL:SSL,CLIENTS:SSL",
            "security.inter.broker.protocol": "SSL",
            **stores(BROKER),
            **{name.replace("_", "."): text for name, text in settings.items()},
        }
    )


def test_a_context_is_made_once() -> None:
    contexts = TlsContexts(config())
    assert contexts.server_context("SSL") is contexts.server_context("SSL")
    assert contexts.server_context("SSL") is not contexts.server_context("CLIENTS")
    assert contexts.client_context("SSL").verify_mode is ssl.CERT_REQUIRED


def test_an_error_names_the_listener() -> None:
    with pytest.raises(ConfigError, match="TLS of listener CLIENTS: No matching PRIVATE KEY"):
        TlsContexts(config(listener_name_clients_ssl_keystore_key="x")).server_context("CLIENTS")
    with pytest.raises(ConfigError, match="TLS of listener SSL: Invalid rule: `x`"):
        TlsContexts(config(ssl_principal_mapping_rules="x")).server_context("SSL")


def test_the_principal_of_a_certificate() -> None:
    rules = {"listener_name_clients_ssl_principal_mapping_rules": "RULE:^CN=([^,]*),.*$/$1/U"}
    contexts = TlsContexts(config(**rules))
    for name in ("SSL", "CLIENTS"):
        contexts.server_context(name)
    assert contexts.principal("SSL", der(CLIENT)) == r"User:CN=client,O=Org\, Ltd"
    assert contexts.principal("CLIENTS", der(CLIENT)) == "User:CLIENT"
    with pytest.raises(PrincipalRefused, match="No rules apply to CN=broker"):
        contexts.principal("CLIENTS", der(BROKER))
    with pytest.raises(PrincipalRefused):
        contexts.principal("SSL", b"\x30")


def test_replacements_are_those_of_listeners_whose_stores_have_changed() -> None:
    settings = config()
    contexts = TlsContexts(settings)
    before = {name: contexts.server_context(name) for name in ("SSL", "CLIENTS")}
    assert contexts.replacements(settings) == ({}, {})
    renewed = stores(AUTHORITY.issue("broker"), "listener.name.clients.")
    candidate = settings.with_dynamic(broker=renewed, default={})
    assert contexts.replacements(candidate, only_files=True) == ({}, {})
    factories, refused = contexts.replacements(candidate)
    assert not refused
    assert list(factories) == ["CLIENTS"]
    assert contexts.server_context("CLIENTS") is before["CLIENTS"]
    contexts.replace(factories)
    assert contexts.server_context("CLIENTS") is factories["CLIENTS"].server_context
    assert contexts.server_context("SSL") is before["SSL"]


def test_a_listener_that_comes_back_reads_its_stores_anew() -> None:
    contexts = TlsContexts(config())
    before = contexts.server_context("CLIENTS")
    contexts.forget("CLIENTS")
    assert contexts.server_context("CLIENTS") is not before
