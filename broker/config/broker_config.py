"""The configuration of a broker: texts from several sources, checked against the table, as typed attributes.

A value comes from the first of: a dynamic value of this broker, a dynamic value for all brokers, the static settings,
the defaults. Static settings come from the command line, the environment and the file (`config_sources.py`). A broker
without ZooKeeper has other defaults for keys with which a single node could not serve groups and transactions. They are
those of Apache Kafka's server.properties, and count as static settings, as they would in that file.

`apply_dynamic` changes the attributes in place, between two callbacks of the event loop, so every holder of the object
reads the new values. It returns the keys that have changed.

Kafka: KafkaConfig, DynamicBrokerConfig (the order of sources).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final, NamedTuple, cast

from odradek.broker.config.config_checks import check_dynamic, check_static, check_values
from odradek.broker.config.config_keys import (
    BROKER_CONFIG_KEYS,
    BROKER_CONFIGS,
    CONFIG_PROVIDERS,
    LISTENER_PREFIX,
    config_synonyms,
    is_provider_key,
    mechanism_and_key,
)
from odradek.broker.config.config_values import BrokerConfigValues
from odradek.broker.config.endpoint import parse_csv, parse_csv_map
from odradek.broker.config.keys.general import ACL_AUTHORIZER, ACL_AUTHORIZER_KEYS
from odradek.broker.config.keys.not_served.effects import (
    WITHOUT_EFFECT,
    acts_on_a_listener,
    acts_on_a_mechanism,
    why_unused,
)
from odradek.broker.config.keys.quotas import BROKER_QUOTAS
from odradek.broker.config.keys.zookeeper import ACL_ZOOKEEPER_KEYS
from odradek.broker.config.listeners import Listeners
from odradek.controller.model.config_codes import ConfigSource
from odradek.protocol.api import API, ApiSpec
from odradek.protocol.java_split import java_trim
from odradek.protocol.metadata_version import MetadataVersion
from odradek.storage.config.config_def import (
    ConfigError,
    ConfigType,
    ConfigValue,
    NoDefault,
    Password,
    parse_type,
    to_text,
)

__all__ = ["BROKER_CONFIGS", "BrokerConfig", "SynonymValue"]

EMBEDDED_METADATA_DEFAULTS: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "odradek-data",
    "broker.id": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""Values of a broker without ZooKeeper for keys that are not set."""

AS_VERSION: Final = "odradek.as.version"

_TYPED_ATTRIBUTES: Final = {name.replace("_", "."): name for name in BrokerConfigValues.__annotations__}


class SynonymValue(NamedTuple):
    """A value of a key in one of its sources. `value` is None for a secret."""

    name: str
    value: str | None
    source: ConfigSource


class BrokerConfig(BrokerConfigValues):
    """Typed values of all keys, and the source of each. Raises ConfigError for an invalid setting."""

    listeners: Listeners
    log_dirs: tuple[str, ...]
    metadata_dir: str
    max_connections_per_ip_overrides: dict[str, int]
    zookeeper_connect: str | None
    metadata_version: MetadataVersion
    """`inter.broker.protocol.version`"""
    apis: Mapping[int, ApiSpec]
    """The APIs that are served, by key: those of `odradek.as.version`."""

    def __init__(self, settings: Mapping[str, str], *, origins: Mapping[str, str] | None = None) -> None:
        """`origins`: the file or option of each setting, for error messages."""
        self._origins = dict(origins or {})
        self._explicit = dict(settings)
        self._static = _with_embedded_defaults(_with_node_id(_with_release_defaults(settings)))
        self.apis = API
        self._dynamic_default: Mapping[str, str] = {}
        self._dynamic_broker: Mapping[str, str] = {}
        self._assigned_broker_id: int | None = None
        self._settings: dict[str, str] = {}
        self._values: dict[str, ConfigValue] = {}
        self._assign(*self._resolve({}, {}))
        if self.odradek_as_version:
            from odradek.protocol.older_releases import apis_of, release_of

            self.apis = apis_of(release_of(self.odradek_as_version))
        check_static(self._values, self.listeners, self.log_dirs)
        self._check()

    @property
    def settings(self) -> Mapping[str, str]:
        """The present texts that are not defaults, dynamic ones included, by key; the defaults of topic configs."""
        return self._settings

    @property
    def dynamic_defaults(self) -> Mapping[str, str]:
        """The dynamic values for all brokers."""
        return self._dynamic_default

    @property
    def dynamic_values(self) -> Mapping[str, str]:
        """The dynamic values of this broker alone."""
        return self._dynamic_broker

    @property
    def uses_zookeeper(self) -> bool:
        return self.zookeeper_connect is not None

    @property
    def unknown_keys(self) -> list[str]:
        """Settings that are not in the table; the prefixes of a listener and of its mechanism are ignored."""
        known = (*ACL_AUTHORIZER_KEYS, *ACL_ZOOKEEPER_KEYS) if self.authorizer_class_name == ACL_AUTHORIZER else ()
        return sorted(
            name
            for name in self._explicit
            if (type_of(_without_prefixes(name)[1]) is None and not (is_provider_key(name) or name in known))
            or name in BROKER_QUOTAS
        )

    @property
    def keys_without_effect(self) -> dict[str, str]:
        """Settings without effect that differ from their defaults, with the reason."""
        return {name: reason for name in sorted(self._explicit) if (reason := self._why_without_effect(name))}

    def names_with_variables(self, configs: Mapping[str, str]) -> list[str]:
        """The keys of `configs` whose value has a variable of a config provider, which the static settings define or
        `configs` themselves, as they may for Apache brokers.
        """
        if CONFIG_PROVIDERS not in self._static and CONFIG_PROVIDERS not in configs:
            return []
        from odradek.broker.config.config_providers import names_with_variables

        found = {*names_with_variables(configs, self._static), *names_with_variables(configs, configs)}
        return [name for name in configs if name in found]

    def _why_without_effect(self, name: str) -> str | None:
        if name.startswith(LISTENER_PREFIX):
            mechanism, key = _without_prefixes(name)
            if type_of(key) is None or (acts_on_a_mechanism if mechanism else acts_on_a_listener)(key):
                return None
            return why_unused(key) or f"it has no effect for a single {'mechanism' if mechanism else 'listener'}"
        if name not in WITHOUT_EFFECT or self._values[name] == BROKER_CONFIG_KEYS[name].default_value():
            return None
        return WITHOUT_EFFECT[name]

    def assign_broker_id(self, broker_id: int) -> None:
        """Set the broker's id: the configured one, else a stored or generated one."""
        self.broker_id = self._assigned_broker_id = broker_id

    def value(self, name: str) -> ConfigValue:
        """The typed value of any key of the table."""
        return self._values[name]

    @property
    def delegation_token_secret(self) -> str | None:
        """None: there are no delegation tokens. Kafka: KafkaConfig.tokenAuthEnabled."""
        secret = self.value("delegation.token.secret.key")
        if secret is None:
            secret = self.value("delegation.token.master.key")
        return (secret.value or None) if isinstance(secret, Password) else None

    def listener_limit(self, listener_name: str, name: str) -> int:
        """The number of a key with the prefix of the listener, else of the key without it."""
        limit = self._listener_limits.get((listener_name, name))
        if limit is None:
            text = self._settings.get(f"{LISTENER_PREFIX}{listener_name.lower()}.{name}")
            limit = cast("int", self._values[name] if text is None else BROKER_CONFIG_KEYS[name].parse(text))
            self._listener_limits[listener_name, name] = limit
        return limit

    def listener_value(self, listener_name: str, name: str, mechanism: str) -> ConfigValue:
        """The value of a key for a SASL mechanism of a listener, else for the listener, else of the key itself."""
        prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
        for key in (f"{prefix}{mechanism.lower()}.{name}", f"{prefix}{name}"):
            if key in self._settings:
                return BROKER_CONFIG_KEYS[name].parse(self._settings[key])
        return self._values[name]

    def listener_class(self, listener_name: str, name: str, mechanism: str = "") -> str | None:
        """The class of a listener, or of one of its SASL mechanisms, by its path; None: not set.

        A key of a mechanism counts with both prefixes only, as in Apache Kafka. Only static settings count: loading a
        Python class runs code. Raises: ConfigError, if a dynamic config has another value.
        """
        prefixed = f"{LISTENER_PREFIX}{listener_name.lower()}.{f'{mechanism.lower()}.' if mechanism else ''}{name}"
        for key in (prefixed,) if mechanism else (prefixed, name):
            text = self._settings.get(key)
            if text != self._static.get(key):
                raise ConfigError(f"{key}={text} is a dynamic config; a class must be set in the configuration file")
            if text is not None:
                return cast("str | None", BROKER_CONFIG_KEYS[name].parse(text))
        return None if mechanism else cast("str | None", self._values[name])

    def configs_of_listener(self, listener_name: str) -> dict[str, str]:
        """The texts of `settings`, those with the prefix of the listener also without it, in place of the broker's."""
        prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
        own = {key.removeprefix(prefix): text for key, text in self._settings.items() if key.startswith(prefix)}
        return {**self._settings, **own}

    def text(self, name: str) -> str | None:
        """The value as text, defaults included; None for null and for a secret."""
        if self.is_sensitive(name):
            return None
        return to_text(self._values[name]) if name in self._values else self._settings.get(name)

    def is_sensitive(self, name: str) -> bool:
        """Secrets, and everything of unknown type, are never shown."""
        return type_of(name) in (None, ConfigType.PASSWORD)

    def dynamic_quota(self, name: str) -> int:
        """A quota of `BROKER_QUOTAS`: this broker's own, else that of all brokers, else Kafka's default."""
        key = BROKER_QUOTAS[name]
        text = self._dynamic_broker.get(name, self._dynamic_default.get(name))
        return cast("int", key.default_value() if text is None else key.parse(text))

    def source(self, name: str) -> ConfigSource:
        synonyms = self.synonyms(name)
        return synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG

    def synonyms(self, name: str) -> list[SynonymValue]:
        """The values of the key in all sources, in order of precedence, beginning with its own name."""
        names = config_synonyms(name)
        hidden = self.is_sensitive(name)
        found: list[SynonymValue] = []
        for texts, source in (
            (self._dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self._dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self._static, ConfigSource.STATIC_BROKER_CONFIG),
        ):
            found += [SynonymValue(key, None if hidden else texts[key], source) for key in names if key in texts]
        for key in names:
            text = _default_text(key)
            if text is not None:
                found.append(SynonymValue(key, None if hidden else text, ConfigSource.DEFAULT_CONFIG))
        start = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
        return found[start:]

    def with_dynamic(self, *, broker: Mapping[str, str], default: Mapping[str, str]) -> BrokerConfig:
        """The configuration with these dynamic values. Raises ConfigError if they are invalid."""
        candidate = copy(self)
        candidate._dynamic_broker, candidate._dynamic_default = broker, default
        candidate._assign(*self._resolve(broker, default))
        candidate._check()
        return candidate

    def apply_dynamic(self, *, broker: Mapping[str, str], default: Mapping[str, str]) -> set[str]:
        """Apply the dynamic values of this broker and of all brokers; return the keys whose value changed.

        Raises ConfigError, and changes nothing, if one of them is invalid.
        """
        settings, values = self._resolve(broker, default)
        changed = {name for name, value in values.items() if value != self._values.get(name)}
        texts = dict(settings.items() ^ self._settings.items())
        changed.update(name for name in texts if name.startswith(LISTENER_PREFIX) and type_of(name) is not None)
        self._dynamic_broker, self._dynamic_default = dict(broker), dict(default)
        self._assign(settings, values)
        return changed

    def _check(self) -> None:
        check_dynamic(
            self._values,
            self.listeners,
            settings=self._settings,
            connection_overrides=self.max_connections_per_ip_overrides,
        )

    def _resolve(
        self, broker: Mapping[str, str], default: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, ConfigValue]]:
        settings = dict(self._static)
        for layer in (default, broker):
            for name in layer:
                for synonym in config_synonyms(name) if name in BROKER_CONFIG_KEYS else ():
                    settings.pop(synonym, None)
            settings.update(layer)
        values = {name: self._parse(name, settings, layers=(broker, default)) for name in BROKER_CONFIG_KEYS}
        check_values(values)
        return settings, values

    def _parse(self, name: str, settings: Mapping[str, str], layers: Sequence[Mapping[str, str]]) -> ConfigValue:
        key = BROKER_CONFIG_KEYS[name]
        if name not in settings:
            return key.default_value()
        try:
            return key.parse(settings[name])
        except ConfigError as error:
            origin = None if any(name in layer for layer in layers) else self._origins.get(name)
            raise error if origin is None else ConfigError(f"{error} (from {origin})") from None

    def _assign(self, settings: dict[str, str], values: dict[str, ConfigValue]) -> None:
        listeners = Listeners.of_values(
            values, inter_broker_protocol_is_set="security.inter.broker.protocol" in settings
        )
        overrides = _connection_overrides(values)
        self._settings, self._values = settings, values
        self._listener_limits: dict[tuple[str, str], int] = {}
        for key, attribute in _TYPED_ATTRIBUTES.items():
            setattr(self, attribute, values[key])
        if self._assigned_broker_id is not None:
            self.broker_id = self._assigned_broker_id
        self.zookeeper_connect = _text(values, "zookeeper.connect") or None
        self.metadata_version = MetadataVersion.of_text(self.inter_broker_protocol_version)
        self.listeners = listeners
        self.max_connections_per_ip_overrides = overrides
        log_dirs = _text(values, "log.dirs")
        self.log_dirs = tuple(parse_csv(_text(values, "log.dir") if log_dirs is None else log_dirs))
        self.metadata_dir = _text(values, "metadata.dir") or (self.log_dirs[0] if self.log_dirs else "")


def type_of(name: str) -> ConfigType | None:
    """The type of a broker's config, static or dynamic, with a listener prefix or without; None if it is unknown."""
    for key in (name, *config_synonyms(name)):
        row = BROKER_CONFIG_KEYS.get(key) or BROKER_QUOTAS.get(key)
        if row is not None:
            return row.type
    return None


def _without_prefixes(name: str) -> tuple[str, str]:
    """The SASL mechanism of the listener, or an empty text, and the key without the prefixes of both."""
    if not name.startswith(LISTENER_PREFIX):
        return "", name
    return mechanism_and_key(name.removeprefix(LISTENER_PREFIX).partition(".")[2])


def _with_node_id(settings: Mapping[str, str]) -> dict[str, str]:
    """Each of broker.id and node.id is the default of the other."""
    texts = dict(settings)
    for one, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if one in texts:
            texts.setdefault(other, texts[one])
    return texts


def _with_release_defaults(settings: Mapping[str, str]) -> Mapping[str, str]:
    """With the defaults of the older release, if there is one, as static settings. An invalid release has none."""
    release = settings.get(AS_VERSION)
    if not release:
        return settings
    from odradek.broker.config.release_defaults import release_defaults

    return {**release_defaults(release), **settings}


def _with_embedded_defaults(settings: dict[str, str]) -> dict[str, str]:
    if java_trim(settings.get("zookeeper.connect", "")):
        return settings
    defaults = dict(EMBEDDED_METADATA_DEFAULTS)
    if "log.dir" in settings:
        del defaults["log.dirs"]
    return _with_node_id({**defaults, **settings})


def _default_text(name: str) -> str | None:
    key = BROKER_CONFIG_KEYS.get(name)
    return None if key is None or isinstance(key.default, NoDefault) else key.default


def _text(values: Mapping[str, ConfigValue], name: str) -> str | None:
    return cast("str | None", values[name])


def _connection_overrides(values: Mapping[str, ConfigValue]) -> dict[str, int]:
    name = "max.connections.per.ip.overrides"
    overrides = {}
    for host, limit in parse_csv_map(name, _text(values, name) or "").items():
        try:
            overrides[host] = cast("int", parse_type(name, limit, ConfigType.INT))
        except ConfigError:
            message = f"'{limit}' is not a number of connections"
            raise ConfigError.of_value(name, _text(values, name), message) from None
    return overrides
