"""How a command, which is no broker, connects to a ZooKeeper: with the keys of a broker's file.

Kafka: ConfigCommand.processCommandWithZk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.zookeeper_config import SASL_JAAS_CONFIG, SASL_PASSWORD, SASL_USERNAME, zookeeper_settings
from odradek.broker.security.sasl.zookeeper_login import zookeeper_sasl
from odradek.controller.tree.zookeeper_settings import SESSION_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings

CONNECTION_KEYS: Final = ("zookeeper.ssl.", SASL_USERNAME, SASL_PASSWORD, SASL_JAAS_CONFIG)


def client_settings(
    connect: str, keys: Mapping[str, str], session_timeout_ms: int = SESSION_TIMEOUT_MS
) -> ZooKeeperSettings:
    """Of `keys`, `CONNECTION_KEYS` count. A client that authenticates is the owner of the nodes that it makes, as in
    Kafka's command.

    Raises: StartupError, ConfigError.
    """
    found = {name: text for name, text in keys.items() if name.startswith(CONNECTION_KEYS)}
    timeout = {"zookeeper.session.timeout.ms": str(session_timeout_ms)}
    config = BrokerConfig({"zookeeper.connect": connect, **timeout, **found})
    settings = zookeeper_settings(config, zookeeper_sasl(config))
    has_certificate = settings.tls is not None and settings.tls.key_and_certificates is not None
    return replace(settings, sets_acl=settings.sasl is not None or has_certificate)
