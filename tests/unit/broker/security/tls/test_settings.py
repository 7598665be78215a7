from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.security.tls.settings import TlsSettings, listener_value
from odradek.storage.config.config_def import ConfigError, Password

LISTENERS = {
    "listeners": "SSL://:9093,CLIENTS://:9094",
    "listener.security.protocol.map": "SSL:SSL,CLIENTS:SSL",
    "security.inter.broker.protocol": "SSL",
}


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig(LISTENERS | {name.replace("_", "."): text for name, text in settings.items()})


def test_defaults_are_kafkas() -> None:
    settings = TlsSettings.of_listener(config(), "SSL")
    assert settings.enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert (settings.client_auth, settings.endpoint_identification) == ("none", "https")
    assert (settings.key_store.type, settings.key_store.location) == ("JKS", None)
    assert TlsSettings.of_client({}) == settings


def test_a_listener_has_its_own_values_and_the_common_ones() -> None:
    settings = config(
        ssl_client_auth="required",
        ssl_keystore_location="/common",
        listener_name_clients_ssl_keystore_location="/clients",
        listener_name_clients_ssl_keystore_password="secret",
    )
    of_clients, of_brokers = (TlsSettings.of_listener(settings, name) for name in ("CLIENTS", "SSL"))
    assert (of_clients.client_auth, of_brokers.client_auth) == ("required", "required")
    assert (of_clients.key_store.location, of_brokers.key_store.location) == ("/clients", "/common")
    assert (of_clients.key_store.password, of_brokers.key_store.password) == (Password("secret"), None)


def test_with_sasl_certificates_are_asked_for_only_by_the_key_of_the_listener() -> None:
    common = config(ssl_client_auth="required")
    assert TlsSettings.of_listener(common, "CLIENTS", has_sasl=True).client_auth == "none"
    own = config(listener_name_clients_ssl_client_auth="requested")
    assert TlsSettings.of_listener(own, "CLIENTS", has_sasl=True).client_auth == "requested"


def test_a_value_of_a_listener_that_is_not_valid_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.client\.auth"):
        config(listener_name_clients_ssl_client_auth="sometimes")
    assert listener_value(config(), "CLIENTS", "ssl.principal.mapping.rules") == "DEFAULT"


def test_values_of_a_client_are_checked() -> None:
    assert TlsSettings.of_client({"ssl.truststore.location": "/ca"}).trust_store.location == "/ca"
    with pytest.raises(ConfigError, match=r"ssl\.client\.auth"):
        TlsSettings.of_client({"ssl.client.auth": "x"})
