"""Topic configs: the table of Kafka 3.9 and the typed `LogConfig` of one log.

A value comes from the topic's override, else from the first broker setting among its synonyms, else from the default.
Old broker settings in hours and minutes are converted to milliseconds.

Kafka: LogConfig, TopicConfig, ServerTopicConfigSynonyms.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigDef, ConfigError, ConfigValue, parse_int64
from odradek.storage.config.message_format import (
    MESSAGE_FORMAT_DEFAULT,
    MESSAGE_FORMAT_VERSION,
    message_format,
    message_format_of_broker,
    protocol_version,
)
from odradek.storage.config.topic_config_table import TOPIC_CONFIG_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from odradek.protocol.metadata_version import MetadataVersion

logger = logging.getLogger(__name__)

LONG_MAX: Final = 2**63 - 1
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000

TOPIC_CONFIGS: Final = ConfigDef(TOPIC_CONFIG_KEYS)


class ConfigSynonym(NamedTuple):
    """A broker setting that is the default of a topic config; `factor` converts its unit."""

    name: str
    factor: int = 1

    def convert(self, text: str) -> str:
        return text if self.factor == 1 else str(int(java_trim(text)) * self.factor)


def _log(*names: str) -> tuple[ConfigSynonym, ...]:
    return tuple(ConfigSynonym(f"log.{name}") for name in names)


TOPIC_CONFIG_SYNONYMS: Final[Mapping[str, tuple[ConfigSynonym, ...]]] = {
    "segment.bytes": _log("segment.bytes"),
    "segment.ms": (ConfigSynonym("log.roll.ms"), ConfigSynonym("log.roll.hours", _HOUR_MS)),
    "segment.jitter.ms": (ConfigSynonym("log.roll.jitter.ms"), ConfigSynonym("log.roll.jitter.hours", _HOUR_MS)),
    "segment.index.bytes": _log("index.size.max.bytes"),
    "flush.messages": _log("flush.interval.messages"),
    "flush.ms": _log("flush.interval.ms", "flush.scheduler.interval.ms"),
    "retention.bytes": _log("retention.bytes"),
    "retention.ms": (
        ConfigSynonym("log.retention.ms"),
        ConfigSynonym("log.retention.minutes", _MINUTE_MS),
        ConfigSynonym("log.retention.hours", _HOUR_MS),
    ),
    "max.message.bytes": (ConfigSynonym("message.max.bytes"),),
    "index.interval.bytes": _log("index.interval.bytes"),
    "delete.retention.ms": _log("cleaner.delete.retention.ms"),
    "min.compaction.lag.ms": _log("cleaner.min.compaction.lag.ms"),
    "max.compaction.lag.ms": _log("cleaner.max.compaction.lag.ms"),
    "file.delete.delay.ms": _log("segment.delete.delay.ms"),
    "min.cleanable.dirty.ratio": _log("cleaner.min.cleanable.ratio"),
    "cleanup.policy": _log("cleanup.policy"),
    "unclean.leader.election.enable": (ConfigSynonym("unclean.leader.election.enable"),),
    "min.insync.replicas": (ConfigSynonym("min.insync.replicas"),),
    "compression.type": (ConfigSynonym("compression.type"),),
    "compression.gzip.level": (ConfigSynonym("compression.gzip.level"),),
    "compression.lz4.level": (ConfigSynonym("compression.lz4.level"),),
    "compression.zstd.level": (ConfigSynonym("compression.zstd.level"),),
    "preallocate": _log("preallocate"),
    "message.format.version": _log("message.format.version"),
    "message.timestamp.type": _log("message.timestamp.type"),
    "message.timestamp.difference.max.ms": _log("message.timestamp.difference.max.ms"),
    "message.timestamp.before.max.ms": _log("message.timestamp.before.max.ms"),
    "message.timestamp.after.max.ms": _log("message.timestamp.after.max.ms"),
    "message.downconversion.enable": _log("message.downconversion.enable"),
    "local.retention.ms": _log("local.retention.ms"),
    "local.retention.bytes": _log("local.retention.bytes"),
}


_TIMESTAMP_LIMITS: Final = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")


def broker_default_text(name: str, broker_settings: Mapping[str, str]) -> str | None:
    """The default of a topic config from the broker's settings; None when none of its synonyms is set."""
    if name == MESSAGE_FORMAT_VERSION:
        return message_format_of_broker(broker_settings)
    if name in _TIMESTAMP_LIMITS:
        return _timestamp_limit(name, broker_settings)
    for synonym in TOPIC_CONFIG_SYNONYMS.get(name, ()):
        text = broker_settings.get(synonym.name)
        if text is not None:
            converted = synonym.convert(text)
            # A negative retention in any unit means "unlimited"; the topic config accepts -1 only.
            return "-1" if name == "retention.ms" and java_trim(converted).startswith("-") else converted
    return None


def _timestamp_limit(name: str, broker_settings: Mapping[str, str]) -> str | None:
    """The deprecated difference fills in for a limit that is not set, or is set to its default.

    A topic's own difference has no effect then: to the topic, its limit is one that is set.
    Kafka: KafkaConfig.logMessageTimestampBeforeMaxMs, KafkaConfig.logMessageTimestampAfterMaxMs.
    """
    text = broker_settings.get(f"log.{name}")
    if text is not None and parse_int64(java_trim(text)) != LONG_MAX:
        return text
    return broker_settings.get("log.message.timestamp.difference.max.ms", text)


def effective_texts(broker_settings: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str | None]:
    """The configured texts of a topic: overrides, then broker settings. Keys with default values are absent."""
    texts: dict[str, str | None] = {}
    for key in TOPIC_CONFIGS:
        text = overrides.get(key.name)
        if text is None:
            text = broker_default_text(key.name, broker_settings)
        if text is not None:
            texts[key.name] = text
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one log, typed. `overrides` are the texts set on the topic itself."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    max_message_bytes: int = 1_048_588
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5
    compact: bool = False
    delete: bool = True
    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    preallocate: bool = False
    message_timestamp_type: int = 0
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = LONG_MAX
    message_downconversion_enable: bool = True
    message_format_version: MetadataVersion = MESSAGE_FORMAT_DEFAULT
    """The effective version: see `message_format`."""
    allows_zstd: bool = True
    leader_replication_throttled_replicas: Set[str] = frozenset()
    """As `partition:broker`, both without leading zeros; `*` is every replica."""
    follower_replication_throttled_replicas: Set[str] = frozenset()
    overrides: Mapping[str, str] = field(default_factory=dict)
    max_segment_ms: int = field(init=False)
    """A compacted log must roll in time for its oldest record to become cleanable (KIP-354)."""

    def __post_init__(self) -> None:
        has_lag = self.compact and self.max_compaction_lag_ms > 0
        max_segment_ms = min(self.max_compaction_lag_ms, self.segment_ms) if has_lag else self.segment_ms
        object.__setattr__(self, "max_segment_ms", max_segment_ms)  # the class is frozen

    @classmethod
    def from_props(cls, broker_settings: Mapping[str, str], overrides: Mapping[str, str]) -> LogConfig:
        """Build the config of a topic from the broker's settings (server names) and the topic's overrides."""
        values = TOPIC_CONFIGS.parse_all(effective_texts(broker_settings, overrides))
        return cls._of_values(values, overrides, broker_settings)

    @classmethod
    def _of_values(
        cls, values: Mapping[str, ConfigValue], overrides: Mapping[str, str], broker_settings: Mapping[str, str]
    ) -> LogConfig:
        policies = {policy.lower() for policy in _strings(values, "cleanup.policy")}
        difference_max_ms = _int(values, "message.timestamp.difference.max.ms")
        before_max_ms = _int(values, "message.timestamp.before.max.ms")
        after_max_ms = _int(values, "message.timestamp.after.max.ms")
        return cls(
            segment_bytes=_int(values, "segment.bytes"),
            segment_ms=_int(values, "segment.ms"),
            segment_jitter_ms=_int(values, "segment.jitter.ms"),
            segment_index_bytes=_int(values, "segment.index.bytes"),
            flush_messages=_int(values, "flush.messages"),
            flush_ms=_int(values, "flush.ms"),
            retention_bytes=_int(values, "retention.bytes"),
            retention_ms=_int(values, "retention.ms"),
            max_message_bytes=_int(values, "max.message.bytes"),
            index_interval_bytes=_int(values, "index.interval.bytes"),
            file_delete_delay_ms=_int(values, "file.delete.delay.ms"),
            delete_retention_ms=_int(values, "delete.retention.ms"),
            min_compaction_lag_ms=_int(values, "min.compaction.lag.ms"),
            max_compaction_lag_ms=_int(values, "max.compaction.lag.ms"),
            min_cleanable_dirty_ratio=cast("float", values["min.cleanable.dirty.ratio"]),
            compact="compact" in policies,
            delete="delete" in policies,
            unclean_leader_election_enable=bool(values["unclean.leader.election.enable"]),
            min_insync_replicas=_int(values, "min.insync.replicas"),
            compression_type=cast("str", values["compression.type"]),
            compression_gzip_level=_int(values, "compression.gzip.level"),
            compression_lz4_level=_int(values, "compression.lz4.level"),
            compression_zstd_level=_int(values, "compression.zstd.level"),
            preallocate=bool(values["preallocate"]),
            message_timestamp_type=1 if values["message.timestamp.type"] == "LogAppendTime" else 0,
            # The deprecated difference.max.ms fills in for whichever of its two successors is left at its default.
            message_timestamp_before_max_ms=difference_max_ms if before_max_ms == LONG_MAX else before_max_ms,
            message_timestamp_after_max_ms=difference_max_ms if after_max_ms == LONG_MAX else after_max_ms,
            message_downconversion_enable=bool(values["message.downconversion.enable"]),
            message_format_version=message_format(overrides, broker_settings),
            allows_zstd=protocol_version(broker_settings).has_zstd,
            leader_replication_throttled_replicas=_replicas(values, "leader.replication.throttled.replicas"),
            follower_replication_throttled_replicas=_replicas(values, "follower.replication.throttled.replicas"),
            overrides=dict(overrides),
        )

    @property
    def record_version(self) -> int:
        """The magic that a leader writes."""
        return self.message_format_version.record_version


def _int(values: Mapping[str, ConfigValue], name: str) -> int:
    return cast("int", values[name])


def _strings(values: Mapping[str, ConfigValue], name: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", values[name]))


def _replicas(values: Mapping[str, ConfigValue], name: str) -> Set[str]:
    """Kafka compares numbers: `00:01` is `0:1`. Kafka: TopicConfigHandler.parseThrottledPartitions."""
    return frozenset(map(_without_zeros, _strings(values, name)))


def _without_zeros(replica: str) -> str:
    partition, colon, broker = replica.partition(":")
    return f"{partition.lstrip('0') or '0'}:{broker.lstrip('0') or '0'}" if colon else replica


def validate_topic_configs(overrides: Mapping[str, str], broker_settings: Mapping[str, str] | None = None) -> None:
    """Raise KafkaError INVALID_CONFIG for unknown names, invalid values and contradictions.

    The configs that a topic had do not count: with ZooKeeper, Kafka lets a topic disable remote storage.
    Kafka: AdminZkClient.validateTopicConfig, LogConfig.validate.
    """
    for name in overrides:
        if name not in TOPIC_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    try:
        values = TOPIC_CONFIGS.parse_all(effective_texts(broker_settings or {}, overrides))
        _check_relations(values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _check_relations(values: Mapping[str, ConfigValue]) -> None:
    low, high = _int(values, "min.compaction.lag.ms"), _int(values, "max.compaction.lag.ms")
    if low > high:
        raise KafkaError(ErrorCode.INVALID_CONFIG, _conflict(low, high))
    if values["remote.log.delete.on.disable"] or values["remote.log.copy.disable"]:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode.",
        )
    if values["remote.storage.enable"]:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def _conflict(low: int, high: int) -> str:
    return f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"


def check_broker_settings(broker_settings: Mapping[str, str]) -> None:
    """Raise ConfigError for broker settings that are no valid default of a topic config.

    The limits of a topic config can be narrower than those of the broker setting.
    """
    for key in TOPIC_CONFIGS:
        text = broker_default_text(key.name, broker_settings)
        try:
            key.parse(text) if text is not None else None
        except ConfigError as error:
            names = " or ".join(
                synonym.name for synonym in TOPIC_CONFIG_SYNONYMS[key.name] if synonym.name in broker_settings
            )
            raise ConfigError(f"{error} (from {names})") from None
    config = LogConfig.from_props(broker_settings, {})
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(_conflict(config.min_compaction_lag_ms, config.max_compaction_lag_ms))


def usable_overrides(topic: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """The overrides of a topic's znode without the invalid ones, which are logged.

    Only programs that write to ZooKeeper directly can store invalid ones.
    """
    usable = {}
    for name, text in overrides.items():
        key = TOPIC_CONFIGS.get(name)
        try:
            if key is not None:
                key.parse(text)
        except ConfigError as error:
            logger.error("Ignoring an invalid config of topic %s: %s", topic, error)
        else:
            usable[name] = text
    return usable
