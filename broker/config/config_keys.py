"""The broker's configuration table: every key of Kafka 3.9's server.properties, and a few of our own.

Data only: name, type, default, limits, documentation in our own words, and whether a key can change while the broker
runs. `BrokerConfig` reads it; DescribeConfigs and docs/configuration.md print it.

Kafka: AbstractKafkaConfig.CONFIG_DEF, DynamicBrokerConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from odradek.broker.config.keys.general import GENERAL_KEYS
from odradek.broker.config.keys.groups import GROUP_KEYS
from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.broker.config.keys.log import LOG_KEYS
from odradek.broker.config.keys.log_cleaner import LOG_CLEANER_KEYS
from odradek.broker.config.keys.metrics import METRIC_KEYS
from odradek.broker.config.keys.network import NETWORK_KEYS
from odradek.broker.config.keys.not_served.kraft import KRAFT_KEYS
from odradek.broker.config.keys.not_served.share_groups import SHARE_GROUP_KEYS
from odradek.broker.config.keys.not_served.tiered_storage import TIERED_STORAGE_KEYS
from odradek.broker.config.keys.odradek import ODRADEK_KEYS
from odradek.broker.config.keys.quotas import QUOTA_KEYS
from odradek.broker.config.keys.replication import REPLICATION_KEYS
from odradek.broker.config.keys.sasl import SASL_KEYS
from odradek.broker.config.keys.secrets import SECRET_KEYS
from odradek.broker.config.keys.ssl import SSL_KEYS
from odradek.broker.config.keys.transactions import TRANSACTION_KEYS
from odradek.broker.config.keys.zookeeper import ZOOKEEPER_KEYS
from odradek.storage.config.config_def import ConfigDef

__all__ = [
    "BROKER_CONFIGS",
    "BROKER_CONFIG_KEYS",
    "CONFIG_PROVIDERS",
    "LISTENER_PREFIX",
    "BrokerConfigKey",
    "UpdateMode",
    "config_synonyms",
    "is_provider_key",
]

BROKER_CONFIG_KEYS: Final[Mapping[str, BrokerConfigKey]] = {
    key.name: key
    for key in (
        *ZOOKEEPER_KEYS,
        *GENERAL_KEYS,
        *NETWORK_KEYS,
        *LOG_KEYS,
        *LOG_CLEANER_KEYS,
        *REPLICATION_KEYS,
        *GROUP_KEYS,
        *TRANSACTION_KEYS,
        *QUOTA_KEYS,
        *METRIC_KEYS,
        *SSL_KEYS,
        *SASL_KEYS,
        *SECRET_KEYS,
        *TIERED_STORAGE_KEYS,
        *SHARE_GROUP_KEYS,
        *KRAFT_KEYS,
        *ODRADEK_KEYS,
    )
}

BROKER_CONFIGS: Final = ConfigDef(tuple(BROKER_CONFIG_KEYS.values()))

_ROLL = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_ROLL_JITTER, _ROLL_JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}

CONFIG_PROVIDERS: Final = "config.providers"

LISTENER_PREFIX: Final = "listener.name."
_LISTENER_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def mechanism_and_key(name: str) -> tuple[str, str]:
    """The SASL mechanism, if there is one, and the key of a name behind the prefix of a listener.

    Kafka: AbstractConfig.valuesWithPrefixOverride.
    """
    mechanism, _, key = name.partition(".")
    return (mechanism, key) if name not in BROKER_CONFIG_KEYS and key in BROKER_CONFIG_KEYS else ("", name)


def is_provider_key(name: str) -> bool:
    """Whether the key defines a config provider; such keys are not in the table."""
    return name == CONFIG_PROVIDERS or name.startswith(f"{CONFIG_PROVIDERS}.")


def config_synonyms(name: str) -> tuple[str, ...]:
    """The keys that can supply the value of `name`, the most specific first."""
    if not name.startswith(LISTENER_PREFIX):
        return _SYNONYMS.get(name, (name,))
    _, _, base = name.removeprefix(LISTENER_PREFIX).partition(".")
    if not base:
        return (name,)
    # listener.name.<listener>.<mechanism>.<key> for some keys, listener.name.<listener>.<key> for the others
    return (name, next((key for key in _LISTENER_MECHANISM_KEYS if base.endswith(key)), base))
