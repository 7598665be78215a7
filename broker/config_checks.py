"""What must hold between several settings, in Kafka's words.

Answers to KafkaConfig.validateValues, for brokers in ZooKeeper mode; what Odradek cannot do is refused here too,
because a setting that is silently ignored is worse than a broker that does not start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.config_keys.effects import refusal
from odradek.broker.replica_selector import REPLICA_SELECTORS
from odradek.controller.broker_info import SecurityProtocol
from odradek.protocol.metadata_version import OLDEST_BETWEEN_BROKERS, MetadataVersion
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.layout import MAGIC_V2
from odradek.storage.config import check_broker_settings
from odradek.storage.config_def import ConfigError, ConfigValue

if TYPE_CHECKING:
    from odradek.broker.config import BrokerConfig

_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")
_MIB: Final = 1024 * 1024


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def check_values(values: Mapping[str, ConfigValue]) -> None:
    """Relations between plain values; also for dynamic ones."""

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
    _require(
        number("log.cleaner.dedupe.buffer.size") > _MIB * max(1, number("log.cleaner.threads")),
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
    idle, delay = number("connections.max.idle.ms"), number("connection.failed.authentication.delay.ms")
    _require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} should always be less than connections.max.idle.ms={idle} "
        "to prevent failed authentication responses from timing out",
    )


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
    _require(
        values["offsets.topic.compression.codec"] != CompressionType.ZSTD or spoken.record_version == MAGIC_V2,
        "offsets.topic.compression.codec zstd can only be used when inter.broker.protocol.version is set to version "
        f"{MetadataVersion.IBP_2_1_IV0.release} or higher",
    )


def check_static(config: BrokerConfig) -> None:
    """What a broker is started with."""
    _require(
        not config.uses_zookeeper or config.metadata_version >= OLDEST_BETWEEN_BROKERS,
        f"inter.broker.protocol.version={config.inter_broker_protocol_version} is not supported with "
        f"zookeeper.connect: brokers of releases before {OLDEST_BETWEEN_BROKERS.release} do not understand the "
        "requests that this broker sends to others.",
    )
    _check_broker_id(config)
    _require(bool(config.log_dirs), "At least one log directory must be defined via log.dirs or log.dir.")
    check_dynamic(config)


def check_dynamic(config: BrokerConfig) -> None:
    """What must hold at the start, and after each change while the broker runs. Raises: ConfigError."""
    _check_unserved(config)
    check_listeners(config)
    check_broker_settings(config.settings)
    overrides = config.max_connections_per_ip_overrides
    _require(
        config.max_connections_per_ip > 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    invalid = [host for host in overrides if _HOST.fullmatch(host) is None]
    _require(not invalid, f"max.connections.per.ip.overrides contains invalid addresses : {','.join(invalid)}")


def _check_unserved(config: BrokerConfig) -> None:
    for end_point in config.listeners:
        _require(
            end_point.security_protocol is SecurityProtocol.PLAINTEXT,
            f"Listener {end_point} uses {end_point.security_protocol.name}, which is not supported yet; "
            "only PLAINTEXT is.",
        )
    for purpose, protocol in (
        ("Requests to other brokers", config.inter_broker_security_protocol),
        ("The controller's requests", config.control_security_protocol),
    ):
        _require(
            protocol is SecurityProtocol.PLAINTEXT,
            f"{purpose} would go over {protocol.name}, which is not supported yet; only PLAINTEXT is.",
        )
    _require(
        not config.value("process.roles"),
        "process.roles is set, but this broker has no KRaft mode: it joins a ZooKeeper cluster (zookeeper.connect) or "
        "keeps the metadata itself.",
    )
    _require(
        not config.value("controller.listener.names"),
        "controller.listener.names must be empty when not running in KRaft mode: "
        f"{config.value('controller.listener.names')}",
    )
    for key in BROKER_CONFIG_KEYS.values():
        reason = refusal(key, is_default=config.value(key.name) == key.default_value())
        _require(reason is None, reason or "")
    _check_password_encoder(config)
    selector = config.replica_selector_class
    _require(
        selector is None or selector in REPLICA_SELECTORS,
        f"replica.selector.class={selector} is not supported; {', '.join(REPLICA_SELECTORS)} is.",
    )
    protocols = cast("list[str]", config.value("group.coordinator.rebalance.protocols"))
    _require("classic" in protocols, "Disabling the 'CLASSIC' protocol is not supported.")
    _require("consumer" not in protocols, "The new 'CONSUMER' rebalance protocol is only supported in KRaft cluster.")


def _check_password_encoder(config: BrokerConfig) -> None:
    if config.value("password.encoder.secret") is not None:
        from odradek.broker.password_encoder import check_algorithms

        check_algorithms(
            cast("str | None", config.value("password.encoder.keyfactory.algorithm")),
            cast("str", config.value("password.encoder.cipher.algorithm")),
            cast("int", config.value("password.encoder.key.length")),
        )


def _check_broker_id(config: BrokerConfig) -> None:
    _require(config.value("node.id") == config.broker_id, "You must set `node.id` to the same value as `broker.id`.")
    if config.broker_id_generation_enable:
        _require(
            -1 <= config.broker_id <= config.reserved_broker_max_id,
            "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id",
        )
    else:
        _require(config.broker_id >= 0, "broker.id must be greater than or equal to 0")


def check_listeners(config: BrokerConfig) -> None:
    """What is advertised must be there, and reachable for the other brokers. Raises: ConfigError."""
    names = [end_point.listener_name for end_point in config.listeners]
    advertised = [end_point.listener_name for end_point in config.advertised_listeners]
    _require(
        config.inter_broker_listener_name in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based "
        f"on currently configured listeners are {','.join(advertised)}",
    )
    _require(
        set(advertised) <= set(names),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found "
        f"{','.join(advertised)}. The valid options based on the current configuration are {','.join(names)}",
    )
    _require(
        config.advertise_connected_address
        or all(end_point.host != "0.0.0.0" for end_point in config.advertised_listeners),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
    )
    control_plane = config.control_plane_listener_name
    if control_plane is not None:
        _require(
            control_plane.upper() in advertised,
            "control.plane.listener.name must be a listener name defined in advertised.listeners. The valid options "
            f"based on currently configured listeners are {','.join(advertised)}",
        )
        _require(
            control_plane.upper() != config.inter_broker_listener_name,
            "control.plane.listener.name, when defined, should have a different value from the inter broker listener "
            f"name. Currently they both have the value {control_plane}",
        )
