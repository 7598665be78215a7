"""Topic configs: the source of each value, and refused values."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.config.log_config import (
    LONG_MAX,
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    LogConfig,
    validate_topic_configs,
)


def test_defaults_are_kafkas() -> None:
    assert LogConfig.from_props({}, {}) == LogConfig()


@pytest.mark.parametrize(
    ("broker", "topic", "expected"),
    [
        ({"log.retention.hours": "2"}, {}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, {}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "5"}, {}, 5),
        ({"log.retention.hours": "-1"}, {}, -1),
        ({"log.retention.minutes": "-5"}, {}, -1),
        ({"log.retention.minutes": "\x01-5 "}, {}, -1),
        ({"log.retention.hours": "\x012 "}, {}, 7_200_000),
        ({"log.retention.hours": "2"}, {"retention.ms": "9"}, 9),
    ],
)
def test_retention_comes_from_the_topic_then_from_the_finest_broker_setting(
    broker: dict[str, str], topic: dict[str, str], expected: int
) -> None:
    assert LogConfig.from_props(broker, topic).retention_ms == expected


def test_old_names_and_units_of_broker_settings() -> None:
    config = LogConfig.from_props(
        {
            "log.roll.hours": "1",
            "log.index.size.max.bytes": "100",
            "message.max.bytes": "7",
            "log.segment.delete.delay.ms": "8",
            "log.cleaner.min.cleanable.ratio": "0.25",
            "log.flush.scheduler.interval.ms": "9",
            "log.message.timestamp.type": "LogAppendTime",
        },
        {},
    )
    assert (config.segment_ms, config.segment_index_bytes, config.max_message_bytes) == (3_600_000, 100, 7)
    assert (config.file_delete_delay_ms, config.min_cleanable_dirty_ratio, config.flush_ms) == (8, 0.25, 9)
    assert config.message_timestamp_type == 1


def test_deprecated_timestamp_difference_fills_in() -> None:
    config = LogConfig.from_props(
        {}, {"message.timestamp.difference.max.ms": "5", "message.timestamp.after.max.ms": "7"}
    )
    assert (config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms) == (5, 7)


@pytest.mark.parametrize(
    ("broker", "topic", "expected"),
    [
        ({}, {}, (5, 5)),
        ({"before": "3"}, {}, (3, 5)),
        ({"after": " +9223372036854775807"}, {}, (5, 5)),
        ({}, {"difference": "7"}, (5, 5)),
        ({}, {"before": "7"}, (7, 5)),
        ({}, {"before": "9223372036854775807", "difference": "7"}, (7, 5)),
        ({}, {"before": "9223372036854775807"}, (5, 5)),
    ],
)
def test_the_brokers_timestamp_difference_is_the_default_of_both_limits(
    broker: dict[str, str], topic: dict[str, str], expected: tuple[int, int]
) -> None:
    def named(prefix: str, texts: dict[str, str]) -> dict[str, str]:
        return {f"{prefix}message.timestamp.{name}.max.ms": text for name, text in texts.items()}

    config = LogConfig.from_props(named("log.", {"difference": "5", **broker}), named("", topic))
    assert (config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms) == expected


def test_cleanup_policies() -> None:
    both = LogConfig.from_props({}, {"cleanup.policy": "delete, compact"})
    assert (both.compact, both.delete) == (True, True)
    none = LogConfig.from_props({}, {"cleanup.policy": ""})
    assert (none.compact, none.delete) == (False, False)


def test_compacted_logs_roll_in_time_for_the_compaction_lag() -> None:
    overrides = {"max.compaction.lag.ms": "10", "segment.ms": "100"}
    assert LogConfig.from_props({}, overrides).max_segment_ms == 100
    assert LogConfig.from_props({}, {**overrides, "cleanup.policy": "compact"}).max_segment_ms == 10


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nonsense": "1"}, "Unknown topic config name: nonsense"),
        ({"retention.ms": "soon"}, "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
        ({"retention.ms": "-2"}, "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ({"segment.bytes": "13"}, "Invalid value 13 for configuration segment.bytes: Value must be at least 14"),
        (
            {"cleanup.policy": "delete,burn"},
            "Invalid value burn for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            {"compression.type": "none"},
            "Invalid value none for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"compression.gzip.level": "0"},
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
        (
            {"leader.replication.throttled.replicas": "0:1,x"},
            "Invalid value [0:1, x] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            {"message.format.version": "9.9"},
            "Invalid value 9.9 for configuration message.format.version: Version 9.9 is not a valid version",
        ),
    ],
)
def test_refusals_in_kafkas_words(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(KafkaError) as error:
        validate_topic_configs(overrides)
    assert (error.value.code, str(error.value)) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"leader.replication.throttled.replicas": "*"},
        {"follower.replication.throttled.replicas": "0:1,3:2"},
        {"message.format.version": "0.10.2-IV0"},
        {"compression.gzip.level": "-1"},
        {"retention.bytes": "-7"},
    ],
)
def test_acceptable_overrides(overrides: dict[str, str]) -> None:
    validate_topic_configs(overrides)


def test_every_synonym_belongs_to_a_topic_config() -> None:
    assert set(TOPIC_CONFIG_SYNONYMS) <= set(TOPIC_CONFIGS.names)
    without = set(TOPIC_CONFIGS.names) - set(TOPIC_CONFIG_SYNONYMS)
    assert without == {
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }


def test_unlimited_is_the_largest_long() -> None:
    assert LogConfig().flush_messages == LONG_MAX == 2**63 - 1
