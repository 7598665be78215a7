"""Dynamic broker configs: checked before they are stored, and applied when the metadata tree notifies a change.

The values are in `BrokerConfig`, so its holders see new ones at once. This module updates objects that were computed
from old values, such as the configs of open logs.

A stored config that cannot be applied keeps the value in force, and is tried again with the next change. It takes no
other config with it, where Apache Kafka applies none of them.

Kafka: DynamicBrokerConfig.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from odradek.broker.config.config_keys import BROKER_CONFIGS, is_provider_key
from odradek.broker.config.dynamic.reconfiguration import (
    LISTENER_CONFIGS,
    PER_LISTENER_ONLY,
    check_change,
    check_reconfiguration,
    dynamic_key,
    is_password,
    names_of_one_broker,
    read_only_names,
    store_of,
)
from odradek.controller.znodes.znodes import DEFAULT_ENTITY
from odradek.storage.config.cleaner_config import RECONFIGURABLE, CleanerConfig
from odradek.storage.config.config_def import ConfigDef, ConfigError, ConfigValue

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.dynamic.dynamic_passwords import Passwords
    from odradek.controller.controller import Controller
    from odradek.storage.manager.log_manager import LogManager

WITH_VARIABLES: Final = "Variables of config providers are replaced in static settings only, not in dynamic configs"

log = logging.getLogger(__name__)


def cleaner_config(value: Callable[[str], ConfigValue]) -> CleanerConfig:
    """The compaction settings of the broker's configs."""

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


class StoreUpdates(Protocol):
    """The keys and certificates of listeners with TLS. Implemented by `security.tls.store_updates.StoreUpdates`."""

    async def validate(self, candidate: BrokerConfig) -> None:
        """Raises: ConfigError if a listener could not use the stores of this configuration."""

    async def reload_files(self, candidate: BrokerConfig) -> None:
        """Use files that have changed under paths that stay the same. Raises: ConfigError."""

    async def apply(self, candidate: BrokerConfig) -> set[str]:
        """Use the stores of this configuration. Returns the listeners that keep theirs, because these cannot be used.

        The names are in lower case, as in the prefixes of keys.
        """


class _Change(NamedTuple):
    """A stored config that is not in force. `text` is None for one in force that is stored no longer."""

    name: str
    per_broker: bool
    text: str | None


class DynamicBrokerConfig:
    """Implements the port `controller.configs.BrokerConfigs`."""

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: LogManager,
        passwords: Passwords,
        stores: Callable[[], StoreUpdates | None] = lambda: None,
    ) -> None:
        """`stores` gives None while there is no listener with TLS."""
        self._config = config
        self._stores = stores
        self._log_manager = log_manager
        self._passwords = passwords
        self._stored: dict[bool, Mapping[str, str]] = {False: {}, True: {}}
        """The usable stored configs of all brokers, and of this broker (True), in force or not."""

    @property
    def definition(self) -> ConfigDef:
        return BROKER_CONFIGS

    def validate_change(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        """Check `configs` as the dynamic configs of this broker or of all brokers. Raises: ConfigError."""
        check_change(configs, per_broker=per_broker)
        variables = self._config.names_with_variables(configs)
        if variables:
            raise ConfigError(f"{WITH_VARIABLES}: Set({', '.join(variables)})")
        self._candidate(configs, per_broker=per_broker)

    async def check_stores(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        """Check the stores that `configs` name, after `validate_change`. Raises: ConfigError."""
        stores = self._stores()
        if stores is not None and per_broker:
            await stores.validate(self._candidate(configs, per_broker=True))

    async def reload_files(self, configs: Mapping[str, str]) -> None:
        """Read the stores of this broker anew whose files have changed, after `check_stores`.

        Raises: ConfigError. Kafka: DynamicBrokerConfig.reloadUpdatedFilesWithoutConfigChange.
        """
        stores = self._stores()
        if stores is not None:
            await stores.reload_files(self._candidate(configs, per_broker=True))

    def usable(self, stored: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        """The stored configs without those of an invalid name or value, which are logged."""
        usable, with_variables = dict(stored), self._config.names_with_variables(stored)
        _remove(usable, read_only_names(stored), "Non-dynamic configs in the metadata are ignored")
        _remove(
            usable,
            [name for name in stored if name in PER_LISTENER_ONLY],
            "Security configs can be dynamic with a listener prefix only; ignored",
        )
        if not per_broker:
            _remove(usable, names_of_one_broker(usable), "Per-broker configs that are set for all brokers are ignored")
        _remove(usable, [name for name in with_variables if name in usable], f"{WITH_VARIABLES}; ignored")
        _remove(usable, [name for name in usable if not _is_parsed(name, usable[name])], "Invalid values are ignored")
        return usable

    async def from_persistent(self, stored: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        """The usable stored configs, with passwords in plain text."""
        return self.usable(await self._passwords.decoded(stored), per_broker=per_broker)

    async def of_config_providers(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Those stored configs, as they are stored, that define config providers or have a variable of one.

        A password may have one, too.
        """
        with_variables = self._config.names_with_variables(await self._passwords.decoded(stored))
        return {name: stored[name] for name in stored if is_provider_key(name) or name in with_variables}

    async def to_persistent(self, configs: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        """The configs to store, with encoded passwords. Raises: ConfigError if they cannot be encoded."""
        if not per_broker and any(map(is_password, configs)):
            raise ConfigError("Password config can be defined only at broker level")
        return await self._passwords.encoded(configs)

    async def entity_changed(
        self, entity_name: str, stored: Mapping[str, str], controller: Controller | None = None
    ) -> set[str]:
        """The stored configs of broker `entity_name`, or of all brokers, have changed: apply them.

        Returns the keys whose value changed.
        """
        if entity_name not in (DEFAULT_ENTITY, str(self._config.broker_id)):
            return set()
        per_broker = entity_name != DEFAULT_ENTITY
        configs = await self.from_persistent(stored, per_broker=per_broker)
        self._stored[per_broker] = configs
        if configs == (self._config.dynamic_values if per_broker else self._config.dynamic_defaults):
            return set()
        return self._apply(await self._changes_after_stores(), controller)

    def _candidate(self, configs: Mapping[str, str], *, per_broker: bool) -> BrokerConfig:
        """The configuration with `configs`. Raises: ConfigError if a start or a running part would refuse it."""
        config = self._config
        broker, default = (configs, config.dynamic_defaults) if per_broker else (config.dynamic_values, configs)
        return self._checked(broker=broker, default=default)

    def _checked(self, *, broker: Mapping[str, str], default: Mapping[str, str]) -> BrokerConfig:
        """The configuration with these dynamic values.

        Raises: ConfigError if a start or a running part would refuse them in place of those in force.
        """
        candidate = self._config.with_dynamic(broker=broker, default=default)
        if self._log_manager.is_started:  # configs that were stored before the start were checked when they were set
            check_reconfiguration(self._config, candidate)
        cleaner = self._log_manager.cleaner
        if cleaner.is_running:
            cleaner.config.validate_reconfiguration(cleaner_config(candidate.value))
        return candidate

    def _pending(self) -> list[_Change]:
        """What differs between the stored configs and those in force, in the order of names."""
        pending: list[_Change] = []
        for per_broker, in_force in ((False, self._config.dynamic_defaults), (True, self._config.dynamic_values)):
            stored = self._stored[per_broker]
            names = {name for name, _ in stored.items() ^ in_force.items()}
            pending += [_Change(name, per_broker, stored.get(name)) for name in names]
        return sorted(pending)

    async def _changes_after_stores(self) -> list[_Change]:
        """Use the new stores of listeners. Returns all pending changes but those of stores that cannot be used."""
        pending, stores = self._pending(), self._stores()
        of_stores = [change for change in pending if store_of(change.name) is not None]
        if stores is None or not of_stores:
            return pending
        refused = await stores.apply(self._with_stores(pending, of_stores))
        return [change for change in pending if store_of(change.name) not in refused]

    def _with_stores(self, pending: list[_Change], of_stores: list[_Change]) -> BrokerConfig:
        """The configuration whose stores are to be used: with all changes if they can be applied together, as those
        that remove a listener and its stores; else with those of stores alone.
        """
        broker, default = _with_changes(self._config, pending)
        try:
            return self._checked(broker=broker, default=default)
        except ConfigError:
            broker, default = _with_changes(self._config, of_stores)
            return self._config.with_dynamic(broker=broker, default=default)

    def _possible(self, changes: list[_Change]) -> BrokerConfig:
        """The configuration with the changes that can be applied; the others are logged.

        Changes are tried again after others that they may depend on.
        """
        possible, refused = self._with_possible(self._config, changes)
        while refused and len(refused) < len(changes):
            changes = list(refused)
            possible, refused = self._with_possible(possible, changes)
        for change, error in refused.items():
            log.error("The dynamic config %s is not applied: %s", change.name, error)
        return possible

    def _with_possible(
        self, config: BrokerConfig, changes: list[_Change]
    ) -> tuple[BrokerConfig, dict[_Change, ConfigError]]:
        """`config` with the changes that are valid, together or one after another, and the errors of the others."""
        broker, default = _with_changes(config, changes)
        try:
            return self._checked(broker=broker, default=default), {}
        except ConfigError as error:
            if len(changes) == 1:
                return config, {changes[0]: error}
        refused: dict[_Change, ConfigError] = {}
        for part in _parts(changes):
            config, of_part = self._with_possible(config, part)
            refused |= of_part
        return config, refused

    def _apply(self, changes: list[_Change], controller: Controller | None) -> set[str]:
        """Apply the changes that can be applied; return the keys whose value changed."""
        config, possible = self._config, self._possible(changes)
        changed = config.apply_dynamic(broker=possible.dynamic_values, default=possible.dynamic_defaults)
        if not changed:
            return changed
        log.info("Dynamic config changed: %s", ", ".join(sorted(changed)))
        producers = self._log_manager.environment.producers
        producers.producer_id_expiration_ms = config.producer_id_expiration_ms
        producers.transaction_verification = config.transaction_partition_verification_enable
        self._log_manager.recovery_threads_per_data_dir = config.num_recovery_threads_per_data_dir
        self._log_manager.update_broker_settings(config.settings)
        if changed & RECONFIGURABLE:
            self._log_manager.cleaner.reconfigure(cleaner_config(config.value))
        if controller is not None and "unclean.leader.election.enable" in changed:
            controller.enable_default_unclean_leader_election()
        return changed


def _with_changes(config: BrokerConfig, changes: list[_Change]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The dynamic values of this broker and of all brokers after the changes."""
    values = {True: dict(config.dynamic_values), False: dict(config.dynamic_defaults)}
    for name, per_broker, text in changes:
        if text is None:
            values[per_broker].pop(name)
        else:
            values[per_broker][name] = text
    return values[True], values[False]


def _parts(changes: list[_Change]) -> tuple[list[_Change], list[_Change]]:
    """Two parts of changes that cannot be applied together. Those of listeners depend on one another."""
    listeners = [change for change in changes if change.name in LISTENER_CONFIGS]
    if 0 < len(listeners) < len(changes):
        return listeners, [change for change in changes if change.name not in LISTENER_CONFIGS]
    middle = len(changes) // 2
    return changes[:middle], changes[middle:]


def _is_parsed(name: str, text: str) -> bool:
    key = dynamic_key(name)
    try:
        if key is not None:
            key.parse(text)
    except ConfigError as error:
        log.error("A dynamic config has an invalid value: %s", error)
        return False
    return True


def _remove(configs: dict[str, str], names: list[str], message: str) -> None:
    if names:
        log.error("%s: %s", message, ", ".join(names))
    for name in names:
        configs.pop(name, None)
