"""The mechanisms, each a module that is imported when a listener enables it, and what they are made from.

Kafka: SaslChannelBuilder.configure, JaasContext.loadServerContext.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from odradek.broker.security.sasl.jaas import parse_jaas_config
from odradek.broker.security.sasl.ports import SaslContext
from odradek.broker.security.sasl.server_authenticator import EnabledMechanism
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.security.sasl.ports import MakeSaslServer, SaslClient, ScramCredentials, TokenCache
    from odradek.storage.config.config_def import ConfigValue
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock

logger = logging.getLogger(__name__)

_ROOM: Final = "odradek.broker.security.sasl"
HANDLER_KEY: Final = "sasl.server.callback.handler.class"
MECHANISMS: Final = {
    "GSSAPI": f"{_ROOM}.kerberos.gssapi",
    "OAUTHBEARER": f"{_ROOM}.oauth.oauthbearer",
    "PLAIN": f"{_ROOM}.plain",
    "SCRAM-SHA-256": f"{_ROOM}.scram",
    "SCRAM-SHA-512": f"{_ROOM}.scram",
}


class MechanismModule(Protocol):
    """See `ports.py`."""

    def load_server(self, context: SaslContext, /) -> MakeSaslServer: ...

    def make_client(self, context: SaslContext, /) -> SaslClient: ...


class SaslParts(NamedTuple):
    """The parts of the broker that mechanisms need."""

    clock: Clock
    io_pool: IoPool
    random_bytes: Callable[[int], bytes]
    scram_credentials: ScramCredentials
    tokens: TokenCache | None
    handler_slots: asyncio.Semaphore | None = None


def mechanism_module(mechanism: str) -> MechanismModule:
    """Raises: ConfigError."""
    if mechanism not in MECHANISMS:
        raise ConfigError(f"SASL mechanism {mechanism} is not supported; {', '.join(MECHANISMS)} are.")
    return cast("MechanismModule", import_module(MECHANISMS[mechanism]))


def sasl_context(config: BrokerConfig, listener_name: str, mechanism: str, parts: SaslParts) -> SaslContext:
    """What a mechanism of a listener is made from, on both sides. Raises: ConfigError."""
    key = f"listener.name.{listener_name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = config.settings.get(key)
    if text is None and config.listener_value(listener_name, "sasl.jaas.config", "") is not None:
        logger.warning(
            "Server config sasl.jaas.config should be prefixed with SASL mechanism name, ignoring config: set %s", key
        )
    if text is None:
        raise ConfigError(
            f"Could not find a 'KafkaServer' or '{listener_name.lower()}.KafkaServer' entry in the JAAS configuration: "
            f"set {key} (there is no JVM that reads a JAAS file)"
        )
    return SaslContext(
        mechanism,
        parse_jaas_config(text),
        lambda name: config.listener_value(listener_name, name, mechanism),
        *parts,
    )


def client_context(
    mechanism: str,
    jaas_config: str,
    settings: Mapping[str, str],
    clock: Clock,
    random_bytes: Callable[[int], bytes],
) -> SaslContext:
    """What the client of a command is made from. Raises: ConfigError."""
    from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
    from odradek.broker.security.sasl.credential_cache import ScramCredentialCache
    from odradek.storage.disk.ports import InlineIoPool

    parts = SaslParts(clock, InlineIoPool(), random_bytes, ScramCredentialCache(), None)

    def value(name: str) -> ConfigValue:
        return BROKER_CONFIG_KEYS[name].parse(settings[name]) if name in settings else None

    return SaslContext(mechanism, parse_jaas_config(jaas_config), value, *parts)


def enabled_mechanisms(config: BrokerConfig, listener_name: str, parts: SaslParts) -> dict[str, EnabledMechanism]:
    """The mechanisms of a listener, in the order in which SaslHandshake names them. Raises: ConfigError."""
    names = cast("list[str]", config.listener_value(listener_name, "sasl.enabled.mechanisms", ""))
    if not names:
        raise ConfigError("No SASL mechanisms are enabled")
    enabled = {}
    for name in java_hash_set_order(names):
        module = mechanism_module(name)
        closed: list[Callable[[], None]] = []
        context = sasl_context(config, listener_name, name, parts)._replace(
            handler_class=config.listener_class(listener_name, HANDLER_KEY, name),
            configs=config.configs_of_listener(listener_name),
            when_closed=closed.append,
        )
        max_reauth_ms = cast("int", context.value("connections.max.reauth.ms"))
        enabled[name] = EnabledMechanism(module.load_server(context), max_reauth_ms, closed)
    return enabled


def java_hash_set_order(names: Iterable[str]) -> list[str]:
    """The order in which a Java HashSet of at most 12 texts returns them."""

    def slot(name: str) -> int:
        code = 0
        for character in name:
            code = (31 * code + ord(character)) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & 15

    return sorted(dict.fromkeys(names), key=slot)
