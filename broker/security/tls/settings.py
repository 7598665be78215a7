"""The `ssl.*` keys of one listener or client, as values.

A broker's listener reads each key with its prefix `listener.name.<name in lower case>.`, else without it.

Kafka: SslConfigs, BrokerSecurityConfigs, AbstractConfig.valuesWithPrefixOverride.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, LISTENER_PREFIX
from odradek.storage.config.config_def import ConfigValue, Password

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.broker_config import BrokerConfig

NO_CLIENT_AUTH = "none"


class StoreSettings(NamedTuple):
    """Where keys or trusted certificates come from. `None`: not set."""

    type: str
    location: str | None
    password: Password | None
    certificates: Password | None
    """The certificates themselves, in PEM."""
    key: Password | None = None
    """The private key itself, in PEM."""
    key_password: Password | None = None


class TlsSettings(NamedTuple):
    """What a TLS context is made from; equal settings make equal contexts, unless a file has changed."""

    protocol: str
    enabled_protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    client_auth: str
    endpoint_identification: str
    key_store: StoreSettings
    trust_store: StoreSettings
    allow_dn_changes: bool
    allow_san_changes: bool

    @classmethod
    def of_values(cls, value: Callable[[str], ConfigValue]) -> TlsSettings:
        """`value` gives the value of a key without prefix. Raises what `value` raises."""

        def text(name: str) -> str | None:
            return cast("str | None", value(name))

        def secret(name: str) -> Password | None:
            return cast("Password | None", value(name))

        return cls(
            protocol=text("ssl.protocol") or "",
            enabled_protocols=tuple(cast("list[str] | None", value("ssl.enabled.protocols")) or ()),
            cipher_suites=tuple(cast("list[str] | None", value("ssl.cipher.suites")) or ()),
            client_auth=(text("ssl.client.auth") or NO_CLIENT_AUTH).lower(),
            endpoint_identification=text("ssl.endpoint.identification.algorithm") or "",
            key_store=StoreSettings(
                type=text("ssl.keystore.type") or "",
                location=text("ssl.keystore.location"),
                password=secret("ssl.keystore.password"),
                certificates=secret("ssl.keystore.certificate.chain"),
                key=secret("ssl.keystore.key"),
                key_password=secret("ssl.key.password"),
            ),
            trust_store=StoreSettings(
                type=text("ssl.truststore.type") or "",
                location=text("ssl.truststore.location"),
                password=secret("ssl.truststore.password"),
                certificates=secret("ssl.truststore.certificates"),
            ),
            allow_dn_changes=bool(value("ssl.allow.dn.changes")),
            allow_san_changes=bool(value("ssl.allow.san.changes")),
        )

    @classmethod
    def of_listener(cls, config: BrokerConfig, listener_name: str, *, has_sasl: bool = False) -> TlsSettings:
        """The settings of a broker's listener. Raises: ConfigError.

        With SASL, certificates of clients are asked for only if the key is set for this listener (KIP-684).
        """
        settings = cls.of_values(lambda name: listener_value(config, listener_name, name))
        if has_sasl and _prefixed(listener_name, "ssl.client.auth") not in config.settings:
            return settings._replace(client_auth=NO_CLIENT_AUTH)
        return settings

    def with_stores_of(self, other: TlsSettings) -> TlsSettings:
        """These settings with other stores: all that may change while a listener is open.

        Kafka: SslConfigs.RECONFIGURABLE_CONFIGS.
        """
        return self._replace(key_store=other.key_store, trust_store=other.trust_store)

    @classmethod
    def of_client(cls, texts: Mapping[str, str]) -> TlsSettings:
        """The settings of a client from its properties; defaults are those of a broker. Raises: ConfigError."""

        def value(name: str) -> ConfigValue:
            key = BROKER_CONFIG_KEYS[name]
            return key.parse(texts[name]) if name in texts else key.default_value()

        return cls.of_values(value)


def listener_value(config: BrokerConfig, listener_name: str, name: str) -> ConfigValue:
    """The value of a key for a listener. Raises: ConfigError."""
    text = config.settings.get(_prefixed(listener_name, name))
    return config.value(name) if text is None else BROKER_CONFIG_KEYS[name].parse(text)


def _prefixed(listener_name: str, name: str) -> str:
    return f"{LISTENER_PREFIX}{listener_name.lower()}.{name}"
