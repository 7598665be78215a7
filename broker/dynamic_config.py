"""Broker configs that change while the broker runs: checked before they are stored, applied when a change is notified.

The values themselves live in `BrokerConfig`; whoever holds it sees the new ones at once. What was computed from old
values (the configs of open logs) is told here. Answers to Kafka's ``DynamicBrokerConfig``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from odradek.broker.config_keys import BROKER_CONFIG_KEYS, BROKER_CONFIGS, UpdateMode
from odradek.broker.config_keys.quotas import BROKER_QUOTAS
from odradek.controller.znodes import DEFAULT_ENTITY
from odradek.storage.cleaner_config import RECONFIGURABLE, CleanerConfig
from odradek.storage.config_def import ConfigDef, ConfigError, ConfigValue

if TYPE_CHECKING:
    from odradek.broker.config import BrokerConfig
    from odradek.controller.controller import Controller
    from odradek.storage.log_manager import LogManager

log = logging.getLogger(__name__)


def cleaner_config(value: Callable[[str], ConfigValue]) -> CleanerConfig:
    """What the broker's configs say about compaction."""

    def number(name: str) -> int:
        return cast("int", value(name))

    return CleanerConfig(
        enable=bool(value("log.cleaner.enable")),
        threads=number("log.cleaner.threads"),
        dedupe_buffer_bytes=number("log.cleaner.dedupe.buffer.size"),
        dedupe_buffer_load_factor=cast("float", value("log.cleaner.io.buffer.load.factor")),
        io_buffer_bytes=number("log.cleaner.io.buffer.size"),
        max_message_bytes=number("message.max.bytes"),
        io_max_bytes_per_second=cast("float", value("log.cleaner.io.max.bytes.per.second")),
        backoff_ms=number("log.cleaner.backoff.ms"),
    )


class DynamicBrokerConfig:
    """Implements the port `controller.configs.BrokerConfigs`."""

    def __init__(self, config: BrokerConfig, log_manager: LogManager) -> None:
        self._config = config
        self._log_manager = log_manager

    @property
    def definition(self) -> ConfigDef:
        return BROKER_CONFIGS

    def validate_change(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        """Raises ConfigError unless these could be the dynamic configs of this broker, or those of all brokers."""
        modes = {name: key.update_mode for name, key in BROKER_CONFIG_KEYS.items() if name in configs}
        read_only = [name for name, mode in modes.items() if mode is UpdateMode.READ_ONLY]
        if read_only:
            raise ConfigError(f"Cannot update these configs dynamically: Set({', '.join(read_only)})")
        for quota in BROKER_QUOTAS:
            if quota.name in configs:
                quota.parse(configs[quota.name])
        own_only = [name for name, mode in modes.items() if mode is UpdateMode.PER_BROKER]
        if own_only and not per_broker:
            raise ConfigError(
                f"Cannot update these configs at default cluster level, broker id must be specified: "
                f"Set({', '.join(own_only)})"
            )
        if per_broker:
            self._validate(broker=configs, default=self._config.dynamic_defaults)
        else:
            self._validate(broker=self._config.dynamic_values, default=configs)

    def _validate(self, *, broker: Mapping[str, str], default: Mapping[str, str]) -> None:
        values = self._config.validate_dynamic(broker=broker, default=default)
        cleaner = self._log_manager.cleaner
        if cleaner.is_running:  # what was stored before the start was accepted then
            cleaner.config.validate_reconfiguration(cleaner_config(values.__getitem__))

    def apply(self, entity_name: str, configs: Mapping[str, str], controller: Controller | None = None) -> set[str]:
        """The configs of broker `entity_name`, or of all brokers, have changed; the keys whose value did.

        One that cannot be applied is left out.
        """
        config = self._config
        broker, default = config.dynamic_values, config.dynamic_defaults
        if entity_name == DEFAULT_ENTITY:
            default = configs
        elif entity_name == str(config.broker_id):
            broker = configs
        else:
            return set()
        try:
            self._validate(broker=broker, default=default)
            changed = config.apply_dynamic(broker=broker, default=default)
        except ConfigError as error:
            log.error("Dynamic config of broker %s is not applied: %s", entity_name, error)
            return set()
        if not changed:
            return changed
        log.info("Dynamic config changed: %s", ", ".join(sorted(changed)))
        producers = self._log_manager.environment.producers
        producers.producer_id_expiration_ms = config.producer_id_expiration_ms
        producers.transaction_verification = config.transaction_partition_verification_enable
        self._log_manager.update_broker_settings(config.settings)
        if changed & RECONFIGURABLE:
            self._log_manager.cleaner.reconfigure(cleaner_config(config.value))
        if controller is not None and "unclean.leader.election.enable" in changed:
            controller.enable_default_unclean_leader_election()
        return changed
