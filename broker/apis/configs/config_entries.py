"""The broker's own configs in a DescribeConfigs response: value, source, and the synonyms that it would fall back to.

The value of a secret is null. Topics are described by `odradek.controller.admin.config_admin`.

Kafka: ConfigHelper.createBrokerConfigEntry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.broker.config.broker_config import type_of
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, UpdateMode
from odradek.broker.config.keys.odradek import ODRADEK_KEYS
from odradek.controller.model.config_codes import ConfigSource
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig, SynonymValue

UNKNOWN_TYPE = 0


def broker_configs(config: BrokerConfig) -> list[DescribeConfigsResourceResult]:
    """Every config of this broker: Kafka's keys without the internal ones, and every other key that is set."""
    names = [name for name, key in BROKER_CONFIG_KEYS.items() if not key.internal and key not in ODRADEK_KEYS]
    names += [name for name in config.settings if name not in set(names)]
    return [_entry(config, name, config.text(name), config.synonyms(name)) for name in names]


def cluster_default_configs(config: BrokerConfig, defaults: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """The dynamic configs of all brokers."""
    return [
        _entry(
            config,
            name,
            None if config.is_sensitive(name) else value,
            [found for found in config.synonyms(name) if found.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG],
        )
        for name, value in defaults.items()
    ]


def _entry(
    config: BrokerConfig, name: str, value: str | None, synonyms: Sequence[SynonymValue]
) -> DescribeConfigsResourceResult:
    key = BROKER_CONFIG_KEYS.get(name)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=key is None or key.update_mode is UpdateMode.READ_ONLY,
        is_default=source is ConfigSource.DEFAULT_CONFIG,
        config_source=int(source),
        is_sensitive=config.is_sensitive(name),
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=int(synonym.source))
            for synonym in synonyms
        ],
        config_type=int(type_of(name) or UNKNOWN_TYPE),
        documentation=None if key is None else key.doc,
    )
