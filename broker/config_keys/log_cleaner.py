"""Compaction."""

from __future__ import annotations

from typing import Final

from odradek.broker.config_keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config_def import ConfigType, Importance, at_least, between

LOG_CLEANER_KEYS: Final = (
    BrokerConfigKey(
        "log.cleaner.threads",
        ConfigType.INT,
        "1",
        Importance.MEDIUM,
        "",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.io.max.bytes.per.second",
        ConfigType.DOUBLE,
        "1.7976931348623157E308",
        Importance.MEDIUM,
        "",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.dedupe.buffer.size",
        ConfigType.LONG,
        "134217728",
        Importance.MEDIUM,
        "",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.io.buffer.size",
        ConfigType.INT,
        "524288",
        Importance.MEDIUM,
        "",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.io.buffer.load.factor",
        ConfigType.DOUBLE,
        "0.9",
        Importance.MEDIUM,
        "",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.backoff.ms",
        ConfigType.LONG,
        "15000",
        Importance.MEDIUM,
        "",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.min.cleanable.ratio",
        ConfigType.DOUBLE,
        "0.5",
        Importance.MEDIUM,
        "",
        between(0, 1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.MEDIUM,
        "",
    ),
    BrokerConfigKey(
        "log.cleaner.delete.retention.ms",
        ConfigType.LONG,
        "86400000",
        Importance.MEDIUM,
        "",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.min.compaction.lag.ms",
        ConfigType.LONG,
        "0",
        Importance.MEDIUM,
        "",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.max.compaction.lag.ms",
        ConfigType.LONG,
        "9223372036854775807",
        Importance.MEDIUM,
        "",
        at_least(1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
)
