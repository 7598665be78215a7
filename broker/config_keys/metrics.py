"""Metrics."""

from __future__ import annotations

from typing import Final

from odradek.broker.config_keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config_def import ConfigType, Importance, at_least

METRIC_KEYS: Final = (
    BrokerConfigKey(
        "metrics.num.samples",
        ConfigType.INT,
        "2",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "metrics.sample.window.ms",
        ConfigType.LONG,
        "30000",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "metric.reporters",
        ConfigType.LIST,
        "",
        Importance.LOW,
        "",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "metrics.recording.level",
        ConfigType.STRING,
        "INFO",
        Importance.LOW,
        "",
    ),
    BrokerConfigKey(
        "auto.include.jmx.reporter",
        ConfigType.BOOLEAN,
        "true",
        Importance.LOW,
        "",
    ),
    BrokerConfigKey(
        "kafka.metrics.reporters",
        ConfigType.LIST,
        "",
        Importance.LOW,
        "",
    ),
    BrokerConfigKey(
        "kafka.metrics.polling.interval.secs",
        ConfigType.INT,
        "10",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "telemetry.max.bytes",
        ConfigType.INT,
        "1048576",
        Importance.LOW,
        "",
        at_least(1),
    ),
)
