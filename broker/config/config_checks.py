"""Checks of settings against each other, with Kafka's error messages.

Settings that Odradek does not support are refused here, too, so that an operator does not rely on an ignored setting.

Kafka: KafkaConfig.validateValues (in ZooKeeper mode).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, LISTENER_PREFIX, mechanism_and_key
from odradek.broker.config.endpoint import parse_csv
from odradek.broker.config.keys.groups import ASSIGNORS
from odradek.broker.config.keys.not_served.effects import refusal
from odradek.broker.config.keys.replication import RACK_AWARE_REPLICA_SELECTOR
from odradek.broker.config.listeners import Listeners
from odradek.controller.model.broker_info import SASL_PROTOCOLS
from odradek.protocol.java_split import java_split
from odradek.protocol.metadata_version import OLDEST_BETWEEN_BROKERS, MetadataVersion
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.layout import MAGIC_V2
from odradek.storage.config.cleaner_config import NO_ROOM, OFFSET_MAP_BYTES_MAX, has_room
from odradek.storage.config.config_def import ConfigError, ConfigValue
from odradek.storage.config.log_config import check_broker_settings

_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")
_MIB: Final = 1024 * 1024


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def check_values(values: Mapping[str, ConfigValue]) -> None:
    """Check relations between plain values, static or dynamic. Raises: ConfigError."""

    def number(name: str) -> int:
        return cast("int", values[name])

    for name, low in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        _require(values[name] is None or number(name) >= low, f"{name} must be greater than or equal to {low}")
    retention = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    deciding = next(name for name in retention if values[name] is not None)
    _require(
        number(deciding) != 0,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
        + ("" if deciding == "log.retention.ms" else f" (from {deciding})"),
    )
    _require(number("log.cleaner.threads") > 0, "Log cleaner threads should be at least 1")
    _require(
        number("log.cleaner.dedupe.buffer.size") // number("log.cleaner.threads") > _MIB,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    _require(
        number("replica.fetch.wait.max.ms") <= number("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket "
        "timeouts",
    )
    _require(
        number("replica.fetch.wait.max.ms") <= number("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent "
        "changes in ISR",
    )
    _require(
        number("queued.max.request.bytes") <= 0
        or number("queued.max.request.bytes") >= number("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    _check_versions(values)
    _check_groups(values)
    idle, delay = number("connections.max.idle.ms"), number("connection.failed.authentication.delay.ms")
    _require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} should always be less than connections.max.idle.ms={idle} "
        "to prevent failed authentication responses from timing out",
    )


def _check_groups(values: Mapping[str, ConfigValue]) -> None:
    """Kafka: the constructors of GroupCoordinatorConfig and ShareGroupConfig."""

    def number(name: str) -> int:
        return cast("int", values[name])

    def at_least(name: str, low: str) -> None:
        _require(number(name) >= number(low), f"{name} must be greater than or equals to {low}")

    _require(
        -1 <= number("offsets.commit.required.acks") <= number("offsets.topic.replication.factor"),
        "offsets.commit.required.acks must be greater or equal to -1 and less or equal to "
        "offsets.topic.replication.factor",
    )
    for assignor in cast("list[str]", values["group.consumer.assignors"]):
        _require(assignor in ASSIGNORS, f"Class {assignor} cannot be found (from group.consumer.assignors)")
    for kind in ("consumer", "share"):
        for limit in ("heartbeat.interval.ms", "session.timeout.ms"):
            name, low, high = f"group.{kind}.{limit}", f"group.{kind}.min.{limit}", f"group.{kind}.max.{limit}"
            at_least(high, low)
            at_least(name, low)
            _require(number(name) <= number(high), f"{name} must be less than or equals to {high}")
    lock, low, high = (f"group.share.{bound}record.lock.duration.ms" for bound in ("", "min.", "max."))
    at_least(lock, low)
    at_least(high, lock)


def _check_versions(values: Mapping[str, ConfigValue]) -> None:
    spoken = MetadataVersion.of_text(cast("str", values["inter.broker.protocol.version"]))
    if not spoken.ignores_message_format:
        text = cast("str", values["log.message.format.version"])
        magic = MetadataVersion.of_text(text).record_version
        _require(
            spoken.record_version >= magic,
            f"log.message.format.version {text} can only be used when inter.broker.protocol.version is set to version "
            f"{MetadataVersion.first_of_record_version(magic).release} or higher",
        )
    codec = values["offsets.topic.compression.codec"]
    _require(codec in tuple(CompressionType), f"Unknown compression type id: {codec}")
    _require(
        codec != CompressionType.ZSTD or spoken.record_version == MAGIC_V2,
        "offsets.topic.compression.codec zstd can only be used when inter.broker.protocol.version is set to version "
        f"{MetadataVersion.IBP_2_1_IV0.release} or higher",
    )


def check_static(values: Mapping[str, ConfigValue], listeners: Listeners, log_dirs: Sequence[str]) -> None:
    """Checks that are made at the start only. Raises: ConfigError."""
    version_text = cast("str", values["inter.broker.protocol.version"])
    _require(
        not values["zookeeper.connect"] or MetadataVersion.of_text(version_text) >= OLDEST_BETWEEN_BROKERS,
        f"inter.broker.protocol.version={version_text} is not supported with "
        f"zookeeper.connect: brokers of releases before {OLDEST_BETWEEN_BROKERS.release} do not understand the "
        "requests that this broker sends to others.",
    )
    _check_release(values)
    _check_broker_id(values)
    _require(bool(log_dirs), "At least one log directory must be defined via log.dirs or log.dir.")
    receive_buffer = cast("int", values["socket.receive.buffer.bytes"])
    _require(
        receive_buffer == -1 or receive_buffer > 0,
        f"socket.receive.buffer.bytes={receive_buffer}: size cannot be 0 or negative",
    )
    _check_offset_map(values)


def _check_release(values: Mapping[str, ConfigValue]) -> None:
    release, version_text = cast("str", values["odradek.as.version"]), values["inter.broker.protocol.version"]
    if release:
        from odradek.protocol.older_releases import release_of

        newest = MetadataVersion.of_text(release_of(release))
        _require(
            MetadataVersion.of_text(cast("str", version_text)) <= newest,
            f"inter.broker.protocol.version {version_text} is newer than odradek.as.version {release}",
        )


def _check_offset_map(values: Mapping[str, ConfigValue]) -> None:
    """Kafka: the constructor of Cleaner."""
    buffer, threads = cast("int", values["log.cleaner.dedupe.buffer.size"]), cast("int", values["log.cleaner.threads"])
    load_factor = cast("float", values["log.cleaner.io.buffer.load.factor"])
    _require(
        not values["log.cleaner.enable"] or has_room(min(buffer // threads, OFFSET_MAP_BYTES_MAX), load_factor),
        f"{NO_ROOM} (log.cleaner.io.buffer.load.factor={load_factor})",
    )


def check_dynamic(
    values: Mapping[str, ConfigValue],
    listeners: Listeners,
    *,
    settings: Mapping[str, str],
    connection_overrides: Mapping[str, int],
) -> None:
    """Checks at the start and at each dynamic change. Raises: ConfigError.

    `settings` are the texts that are not defaults, `connection_overrides` is `max.connections.per.ip.overrides`.
    """
    _check_unserved(values)
    check_listeners(listeners)
    _check_early_start(values, listeners)
    _check_listener_settings(settings, listeners)
    _check_sasl_between_brokers(values, settings, listeners)
    check_broker_settings(settings)
    _require(
        cast("int", values["max.connections.per.ip"]) > 0 or bool(connection_overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    invalid = [host for host in connection_overrides if _HOST.fullmatch(host) is None]
    _require(not invalid, f"max.connections.per.ip.overrides contains invalid addresses : {','.join(invalid)}")


def _check_unserved(values: Mapping[str, ConfigValue]) -> None:
    _require(
        not values["process.roles"],
        "process.roles is set, but this broker has no KRaft mode: it joins a ZooKeeper cluster (zookeeper.connect) or "
        "keeps the metadata itself.",
    )
    controllers = cast("str | None", values["controller.listener.names"])
    names = java_split(controllers) if controllers else []
    _require(not names, f"controller.listener.names must be empty when not running in KRaft mode: [{', '.join(names)}]")
    for key in BROKER_CONFIG_KEYS.values():
        # `controller.listener.names=,` names no listener: Apache Kafka accepts it.
        is_default = values[key.name] in (key.default_value(), "") or key.name == "controller.listener.names"
        reason = refusal(key, is_default=is_default)
        _require(reason is None, reason or "")
    _check_password_encoder(values)
    selector = values["replica.selector.class"]
    _require(
        selector in (None, RACK_AWARE_REPLICA_SELECTOR),
        f"replica.selector.class={selector} is not supported; {RACK_AWARE_REPLICA_SELECTOR} is.",
    )
    protocols = cast("list[str]", values["group.coordinator.rebalance.protocols"])
    _require("classic" in protocols, "Disabling the 'classic' protocol is not supported.")
    _require("consumer" not in protocols, "The new 'consumer' rebalance protocol is only supported in KRaft cluster.")


def _check_password_encoder(values: Mapping[str, ConfigValue]) -> None:
    if values["password.encoder.secret"] is not None:
        from odradek.broker.config.password_encoder import check_algorithms

        check_algorithms(
            cast("str | None", values["password.encoder.keyfactory.algorithm"]),
            cast("str", values["password.encoder.cipher.algorithm"]),
            cast("int", values["password.encoder.key.length"]),
        )


def _check_broker_id(values: Mapping[str, ConfigValue]) -> None:
    broker_id = cast("int", values["broker.id"])
    _require(values["node.id"] == broker_id, "You must set `node.id` to the same value as `broker.id`.")
    if values["broker.id.generation.enable"]:
        _require(
            -1 <= broker_id <= cast("int", values["reserved.broker.max.id"]),
            "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id",
        )
    else:
        _require(broker_id >= 0, "broker.id must be greater than or equal to 0")


def check_listeners(listeners: Listeners) -> None:
    """Check that advertised listeners exist and that other brokers can reach them. Raises: ConfigError."""
    names = [end_point.listener_name for end_point in listeners.bound]
    advertised = [end_point.listener_name for end_point in listeners.advertised]
    _require(
        listeners.inter_broker.name in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based "
        f"on currently configured listeners are {','.join(advertised)}",
    )
    _require(
        set(advertised) <= set(names),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found "
        f"{','.join(advertised)}. The valid options based on the current configuration are {','.join(names)}",
    )
    _require(
        listeners.advertise_connected_address or all(end_point.host != "0.0.0.0" for end_point in listeners.advertised),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
    )
    if listeners.control_plane is not None:
        name = listeners.control_plane.name
        _require(
            name in advertised,
            "control.plane.listener.name must be a listener name defined in advertised.listeners. The valid options "
            f"based on currently configured listeners are {','.join(advertised)}",
        )
        _require(
            name != listeners.inter_broker.name,
            "control.plane.listener.name, when defined, should have a different value from the inter broker listener "
            f"name. Currently they both have the value {name}",
        )


def _check_early_start(values: Mapping[str, ConfigValue], listeners: Listeners) -> None:
    """The names must be in capitals, as in `listeners`: Kafka does not convert them here."""
    names = {end_point.listener_name for end_point in listeners.bound}
    for name in parse_csv(cast("str | None", values["early.start.listeners"])):
        _require(
            name in names,
            f"early.start.listeners contains listener {name}, but this is not contained in listeners or "
            "controller.listener.names",
        )


def _check_sasl_between_brokers(
    values: Mapping[str, ConfigValue], settings: Mapping[str, str], listeners: Listeners
) -> None:
    listener = listeners.inter_broker
    if listener.security_protocol not in SASL_PROTOCOLS:
        return
    key = "sasl.enabled.mechanisms"
    text = settings.get(f"{LISTENER_PREFIX}{listener.name.lower()}.{key}")
    enabled = values[key] if text is None else BROKER_CONFIG_KEYS[key].parse(text)
    _require(
        values["sasl.mechanism.inter.broker.protocol"] in cast("list[str]", enabled),
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for "
        "inter-broker communication",
    )


def _check_listener_settings(settings: Mapping[str, str], listeners: Listeners) -> None:
    """Parse the keys with the prefix `listener.name.<listener>.` of existing listeners; other prefixes are ignored.

    Kafka: AbstractConfig.valuesWithPrefixOverride.
    """
    for end_point in listeners.bound:
        prefix = f"{LISTENER_PREFIX}{end_point.listener_name.lower()}."
        for name, text in settings.items():
            if name.startswith(prefix):
                key = BROKER_CONFIG_KEYS.get(mechanism_and_key(name.removeprefix(prefix))[1])
                if key is not None:
                    key.parse(text)
