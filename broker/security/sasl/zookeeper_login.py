"""The broker's login to ZooKeeper by SASL: DIGEST-MD5 or GSSAPI, which are the mechanisms of ZooKeeper's servers.

The login is an entry as in section `Client` of the JAAS file of an Apache Kafka broker:

    com.sun.security.auth.module.Krb5LoginModule required
        useKeyTab=true keyTab="/etc/kafka/kafka.keytab" principal="kafka/broker1.example.com@EXAMPLE.COM";
    org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret";

The principal of a server is `zookeeper/HOST`, with the host of `zookeeper.connect`. The option `serviceName` of the
entry replaces `zookeeper`; in Java this is the system property `zookeeper.sasl.client.username`.

ZooKeeper: ZooKeeperSaslClient, SaslServerPrincipal, Login.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from odradek.broker.config.zookeeper_config import SASL_JAAS_CONFIG, SASL_PASSWORD, SASL_USERNAME
from odradek.broker.machine.startup_error import StartupError
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.security.sasl.ports import JaasEntry
    from odradek.controller.tree.zookeeper_settings import ZooKeeperSasl
    from odradek.storage.config.config_def import Password

DIGEST_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
SERVICE: Final = "zookeeper"


def zookeeper_sasl(config: BrokerConfig) -> ZooKeeperSasl | None:
    """None: no key asks for SASL. Raises: StartupError."""
    username = cast("str | None", config.value(SASL_USERNAME))
    password, jaas_config = _secret(config, SASL_PASSWORD), _secret(config, SASL_JAAS_CONFIG)
    if jaas_config is None and username is None and password is None:
        return None
    if jaas_config is not None and (username is not None or password is not None):
        raise StartupError(f"Set either {SASL_JAAS_CONFIG}, or {SASL_USERNAME} and {SASL_PASSWORD}")
    try:
        import puresasl  # noqa: F401
    except ImportError as error:
        key = SASL_USERNAME if jaas_config is None else SASL_JAAS_CONFIG
        raise StartupError(f"{key} is set: install odradek[sasl] for SASL to ZooKeeper") from error
    if jaas_config is not None:
        try:
            return _by_entry(jaas_config)
        except ConfigError as error:
            raise StartupError(f"{SASL_JAAS_CONFIG}: {error}") from error
    if username is None or password is None:
        raise StartupError(f"Set both {SASL_USERNAME} and {SASL_PASSWORD}, or neither")
    return _digest(username, password)


def _secret(config: BrokerConfig, key: str) -> str | None:
    value = cast("Password | None", config.value(key))
    return None if value is None else value.value


def _by_entry(jaas_config: str) -> ZooKeeperSasl:
    """Raises: ConfigError."""
    from odradek.broker.security.sasl.jaas import parse_jaas_config
    from odradek.broker.security.sasl.kerberos.krb5_login import LOGIN_MODULE
    from odradek.broker.security.sasl.login_options import login_name_and_password

    entry = parse_jaas_config(jaas_config)
    if entry.login_module == DIGEST_MODULE:
        return _digest(*login_name_and_password(entry))
    if entry.login_module != LOGIN_MODULE:
        raise ConfigError(f"{entry.login_module} is not supported; {DIGEST_MODULE} and {LOGIN_MODULE} are")
    return _kerberos(entry)


def _digest(username: str, password: str) -> dict[str, str]:
    return {"mechanism": "DIGEST-MD5", "username": username, "password": password}


def _kerberos(entry: JaasEntry) -> ZooKeeperSasl:
    """Raises: ConfigError."""
    from odradek.broker.security.sasl.kerberos.gssapi import exchange_maker
    from odradek.broker.security.sasl.kerberos.krb5_login import login_of

    return exchange_maker(login_of(entry, entry.options.get("serviceName", SERVICE)))
