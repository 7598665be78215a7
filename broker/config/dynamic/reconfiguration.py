"""Checks of dynamic configs: names, types, and the changes that a running broker supports.

Checks that also apply at a start are in `config_checks`.

Kafka: DynamicBrokerConfig.validateConfigs, DynamicThreadPool.validateReconfiguration,
DynamicLogConfig.validateReconfiguration, DynamicListenerConfig.validateReconfiguration,
DynamicMetricsReporters.validateReconfiguration, SocketServer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, LISTENER_PREFIX, UpdateMode, is_provider_key
from odradek.broker.config.keys.quotas import BROKER_QUOTAS
from odradek.broker.config.keys.sasl import DEFAULT_PRINCIPAL_BUILDER, UNSECURED_VALIDATOR, VALIDATORS
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigDef, ConfigError, ConfigKey, ConfigType
from odradek.storage.config.log_config import TOPIC_CONFIG_SYNONYMS, LogConfig

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig

DYNAMIC_CONFIGS: Final = ConfigDef(
    (
        *(key for key in BROKER_CONFIG_KEYS.values() if key.update_mode is not UpdateMode.READ_ONLY),
        *BROKER_QUOTAS,
    )
)

PER_LISTENER_ONLY: Final = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)
"""Kafka: SslConfigs.RECONFIGURABLE_CONFIGS."""

LISTENER_LIMITS: Final = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""Keys with a listener prefix that may be set for all brokers."""

REGISTERED_LISTENERS: Final = frozenset({"advertised.listeners", "listeners", "listener.security.protocol.map"})
"""Keys that may change what the broker registers."""

LISTENER_CONFIGS: Final = (
    REGISTERED_LISTENERS
    | {
        key.name
        for key in BROKER_CONFIG_KEYS.values()
        if key.name.startswith(("ssl.", "sasl.")) and key.update_mode is not UpdateMode.READ_ONLY
    }
    | LISTENER_LIMITS
    | {"principal.builder.class"}
)
"""Kafka: DynamicListenerConfig.ReconfigurableConfigs."""

PASSWORDS: Final = tuple(key.name for key in DYNAMIC_CONFIGS if key.type is ConfigType.PASSWORD)

_LISTENER_CONFIG: Final = re.compile(r"listener\.name\.([^.]*)\.(.*)", re.DOTALL)
_THREAD_POOLS: Final = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)
_LOG_KEYS: Final = tuple(synonyms[0].name for synonyms in TOPIC_CONFIG_SYNONYMS.values())
_CLASSES: Final = {
    "principal.builder.class": (DEFAULT_PRINCIPAL_BUILDER,),
    "sasl.server.callback.handler.class": (*VALIDATORS, UNSECURED_VALIDATOR),
}
"""Keys of listeners with the values that a request may set: classes of Apache Kafka that are known by their names."""
_JMX_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"


def is_password(name: str) -> bool:
    """Whether the dynamic config is a secret, for a listener or not."""
    return name.endswith(PASSWORDS)


def store_of(name: str) -> str | None:
    """The listener, as in the key, whose key store or trust store the dynamic config is about; None: it is not."""
    match = _LISTENER_CONFIG.fullmatch(name)
    return match[1] if match is not None and match[2] in PER_LISTENER_ONLY else None


def _base_name(name: str) -> str | None:
    """The key behind `listener.name.<listener>.<key>`; None for any other name."""
    match = _LISTENER_CONFIG.fullmatch(name)
    return None if match is None else match[2]


def dynamic_key(name: str) -> ConfigKey | None:
    """The row of the table for a dynamic config; None for an unknown one."""
    base = _base_name(name)
    return DYNAMIC_CONFIGS.get(name if base is None else base)


def read_only_names(names: Iterable[str]) -> list[str]:
    """Names that only static settings may have. Config providers are among them: they read files of the broker."""
    return [
        name for name in names if (name in BROKER_CONFIG_KEYS and name not in DYNAMIC_CONFIGS) or is_provider_key(name)
    ]


def names_of_one_broker(names: Iterable[str]) -> list[str]:
    """The names that cannot be set for all brokers."""
    found = []
    for name in names:
        base, key = _base_name(name), BROKER_CONFIG_KEYS.get(name)
        is_per_broker = key is not None and key.update_mode is UpdateMode.PER_BROKER
        if is_per_broker or (base is not None and base not in LISTENER_LIMITS):
            found.append(name)
    return found


def check_change(configs: Mapping[str, str], *, per_broker: bool) -> None:
    """Check names and types of the dynamic configs of one broker or of all brokers. Raises: ConfigError."""
    _refuse(read_only_names(configs), "Cannot update these configs dynamically")
    _refuse(
        [name for name in configs if name in PER_LISTENER_ONLY],
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    _check_classes(configs, "principal.builder.class")
    for name, text in configs.items():
        key = dynamic_key(name)
        if key is not None:
            key.parse(text)
    if not per_broker:
        _refuse(
            names_of_one_broker(configs),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    _check_classes(configs, "sasl.server.callback.handler.class")


def _check_classes(configs: Mapping[str, str], key: str) -> None:
    """Refuse Python classes: loading one runs code, which a request must not cause. Raises: ConfigError."""
    for name, text in configs.items():
        if (name == key or name.endswith(f".{key}")) and java_trim(text) not in _CLASSES[key]:
            raise ConfigError.of_value(key, text, f"Class {text} could not be found.")


def _refuse(names: list[str], message: str) -> None:
    if names:
        raise ConfigError(f"{message}: Set({', '.join(names)})")


def check_reconfiguration(old: BrokerConfig, new: BrokerConfig) -> None:
    """Check that the running parts of a broker support the change. Raises: ConfigError."""
    if old.value("metric.reporters") != new.value("metric.reporters"):
        for reporter in cast("list[str]", new.value("metric.reporters")):
            if reporter != _JMX_REPORTER:
                raise ConfigError(f"Invalid value {reporter} for configuration metric.reporters: no such class")
    for name in {end_point.listener_name for end_point in old.listeners.bound}:
        _check_listener(old, new, name)
    for pool in _THREAD_POOLS:
        _check_threads(pool, cast("int", old.value(pool)), cast("int", new.value(pool)))
    if any(old.value(name) != new.value(name) for name in _LOG_KEYS):
        _check_local_retention(new)
    _check_listener_configs(old, new)
    _check_protocols(old, new)


def _check_listener(old: BrokerConfig, new: BrokerConfig, listener_name: str) -> None:
    prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
    for name, text in new.settings.items():
        key = BROKER_CONFIG_KEYS.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if key is not None:
            key.parse(text)

    def change(name: str) -> tuple[int, int]:
        return old.listener_limit(listener_name, name), new.listener_limit(listener_name, name)

    _check_threads("num.network.threads", *change("num.network.threads"))
    limits = {name: change(name) for name in ("max.connections", "max.connection.creation.rate")}
    if any(before != after for before, after in limits.values()):
        for name, (_, after) in limits.items():
            if after <= 0:
                raise ConfigError(f"Invalid {name} {after}")


def _check_threads(name: str, old: int, new: int) -> None:
    if new == old:
        return
    message = f"Dynamic thread count update validation failed for {name}={new}"
    if new <= 0:
        raise ConfigError(f"{message}, value should be at least 1")
    if new < old // 2:
        raise ConfigError(f"{message}, value should be at least half the current value {old}")
    if new > old * 2:
        raise ConfigError(f"{message}, value should not be greater than double the current value {old}")


def _check_local_retention(config: BrokerConfig) -> None:
    logs = LogConfig.from_props(config.settings, {})
    for local, whole, limit in (
        ("log.local.retention.ms", "log.retention.ms", logs.retention_ms),
        ("log.local.retention.bytes", "log.retention.bytes", logs.retention_bytes),
    ):
        value = cast("int", config.value(local))
        if limit <= -1 or value == -2:
            continue
        if value == -1:
            raise ConfigError.of_value(local, value, f"Value must not be -1 as {whole} value is set as {limit}.")
        if value > limit:
            raise ConfigError.of_value(local, value, f"Value must not be more than {whole} property value: {limit}")


def _check_listener_configs(old: BrokerConfig, new: BrokerConfig) -> None:
    """Refuse other configs for a listener that stays, if one of `LISTENER_CONFIGS` changes, as Apache Kafka does."""
    if not {name for name, _ in old.settings.items() ^ new.settings.items()} & LISTENER_CONFIGS:
        return
    names = {end_point.listener_name for end_point in old.listeners.bound}
    for end_point in new.listeners.bound:
        name = end_point.listener_name
        if name in names and _immutable(old, name) != _immutable(new, name):
            raise ConfigError(
                f"Configs cannot be updated dynamically for existing listener ListenerName({name}), restart broker or "
                "create a new listener for update"
            )


def _immutable(config: BrokerConfig, listener_name: str) -> dict[str, str]:
    prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
    texts = {name.removeprefix(prefix): text for name, text in config.settings.items() if name.startswith(prefix)}
    return {name: text for name, text in texts.items() if name not in PER_LISTENER_ONLY | LISTENER_LIMITS}


def _check_protocols(old: BrokerConfig, new: BrokerConfig) -> None:
    before = {end_point.listener_name: end_point.security_protocol for end_point in old.listeners.bound}
    for end_point in new.listeners.bound:
        if before.get(end_point.listener_name, end_point.security_protocol) is not end_point.security_protocol:
            raise ConfigError(
                f"Security protocol cannot be updated for existing listener ListenerName({end_point.listener_name})"
            )
