"""The settings of the ZooKeeper client from the keys `zookeeper.*`; unsupported values are refused by name.

Differences to Apache Kafka: stores of keys and certificates are PEM files, which ZooKeeper's own client reads as well;
revocation lists come from the trust store only, and OCSP is not supported; the login of SASL is in keys of the broker,
while a JVM reads a JAAS file.

Kafka: KafkaServer.zkClientConfigFromKafkaConfig, ZkConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, cast

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.config.keys.zookeeper import ACL_ZOOKEEPER_KEYS, ACL_ZOOKEEPER_URL
from odradek.broker.machine.startup_error import StartupError
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls, hosts_and_chroot
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.controller.tree.zookeeper_settings import ZooKeeperSasl
    from odradek.storage.config.config_def import ConfigValue, Password

STORE_TYPES: Final = {".pem": "PEM", ".jks": "JKS", ".p12": "PKCS12", ".bcfks": "BCFKS"}
"""The type of a store by the ending of its file name, as in ZooKeeper."""

SASL_USERNAME: Final = "odradek.zookeeper.sasl.username"
SASL_PASSWORD: Final = "odradek.zookeeper.sasl.password"
SASL_JAAS_CONFIG: Final = "odradek.zookeeper.sasl.jaas.config"

Value: TypeAlias = "Callable[[str], ConfigValue]"
"""The typed value of a key."""


def zookeeper_settings(config: BrokerConfig, sasl: ZooKeeperSasl | None) -> ZooKeeperSettings:
    """`sasl`: the broker's login. Raises StartupError for an invalid or unsupported value."""
    return _settings(config, "zookeeper.connect", config.zookeeper_connect or "", config.value, sasl)


def authorizer_zookeeper_settings(config: BrokerConfig, sasl: ZooKeeperSasl | None) -> ZooKeeperSettings | None:
    """Those of AclAuthorizer, if a key `authorizer.zookeeper.*` sets one; the others, and the login, are the broker's.

    Raises: StartupError. Kafka: AclAuthorizer.configure, AclAuthorizer.zkClientConfigFromKafkaConfigAndMap.
    """
    if not ACL_ZOOKEEPER_KEYS & config.settings.keys():
        return None
    connect = java_trim(config.settings.get(ACL_ZOOKEEPER_URL, config.zookeeper_connect or ""))
    if not connect:
        raise StartupError(f"AclAuthorizer has a ZooKeeper of its own only with {ACL_ZOOKEEPER_URL}")

    def value(name: str) -> ConfigValue:
        key = f"authorizer.{name}"
        if key not in ACL_ZOOKEEPER_KEYS or key not in config.settings:
            return config.value(name)
        try:
            return BROKER_CONFIG_KEYS[name].parse(config.settings[key])
        except ConfigError as error:
            raise StartupError(f"{key}: {error}") from error

    try:
        return _settings(config, ACL_ZOOKEEPER_URL, connect, value, sasl)
    except StartupError as error:
        raise StartupError(f"The ZooKeeper of AclAuthorizer (authorizer.zookeeper.*): {error}") from error


def _settings(
    config: BrokerConfig, key: str, connect: str, value: Value, sasl: ZooKeeperSasl | None
) -> ZooKeeperSettings:
    try:
        hosts, chroot = hosts_and_chroot(connect)
    except ValueError as error:
        raise StartupError(f"{key}={error}") from error
    session_timeout_ms = cast("int", value("zookeeper.session.timeout.ms"))
    connection_timeout_ms = cast("int | None", value("zookeeper.connection.timeout.ms"))
    if connection_timeout_ms is None:  # also of the authorizer, as in Apache Kafka
        connection_timeout_ms = config.zookeeper_session_timeout_ms
    tls = _tls(value)
    if config.zookeeper_set_acl and sasl is None and (tls is None or tls.key_and_certificates is None):
        raise StartupError(
            "zookeeper.set.acl is true, but the broker does not authenticate to ZooKeeper: set zookeeper.ssl.client."
            f"enable and zookeeper.ssl.keystore.location, or {SASL_USERNAME}, or {SASL_JAAS_CONFIG}"
        )
    return ZooKeeperSettings(
        hosts=hosts,
        chroot=chroot,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=connection_timeout_ms,
        max_in_flight_requests=cast("int", value("zookeeper.max.in.flight.requests")),
        sets_acl=config.zookeeper_set_acl,
        tls=tls,
        sasl=sasl,
    )


def _tls(value: Value) -> ZooKeeperTls | None:
    if not value("zookeeper.ssl.client.enable"):
        return None
    if value("zookeeper.ssl.ocsp.enable"):
        raise StartupError("zookeeper.ssl.ocsp.enable is true, but OCSP is not supported")
    enabled = cast("list[str] | None", value("zookeeper.ssl.enabled.protocols"))
    identification = _text(value, "zookeeper.ssl.endpoint.identification.algorithm") or ""
    if identification.lower() not in ("", "https"):
        raise StartupError(f"zookeeper.ssl.endpoint.identification.algorithm={identification}: either HTTPS or empty")
    return ZooKeeperTls(
        protocols=tuple(enabled or [_text(value, "zookeeper.ssl.protocol") or ""]),
        cipher_suites=tuple(cast("list[str] | None", value("zookeeper.ssl.cipher.suites")) or ()),
        key_and_certificates=_store(value, "zookeeper.ssl.keystore"),
        key_password=_secret(value, "zookeeper.ssl.keystore.password"),
        trusted_certificates=_store(value, "zookeeper.ssl.truststore"),
        verifies_host_name=bool(identification),
        checks_revocation=bool(value("zookeeper.ssl.crl.enable")),
    )


def _store(value: Value, prefix: str) -> str | None:
    location = _text(value, f"{prefix}.location")
    if location is None:
        return None
    kind = _text(value, f"{prefix}.type")
    if kind is None:
        kind = next((kind for ending, kind in STORE_TYPES.items() if location.endswith(ending)), None)
    if kind is None:
        raise StartupError(f"{prefix}.location={location}: the file name does not tell the type, set {prefix}.type=PEM")
    if kind.upper() != "PEM":
        raise StartupError(
            f"{prefix}.location={location} is a store of type {kind}, which is not supported: convert it to a PEM file "
            f"and set {prefix}.type=PEM"
        )
    return location


def _text(value: Value, key: str) -> str | None:
    return cast("str | None", value(key))


def _secret(value: Value, key: str) -> str | None:
    password = cast("Password | None", value(key))
    return None if password is None else password.value
