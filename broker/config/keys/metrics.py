"""Keys of metrics.

Kafka: MetricConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config.config_def import ConfigType, Importance, at_least

METRIC_KEYS: Final = (
    BrokerConfigKey(
        "metrics.num.samples",
        ConfigType.INT,
        "2",
        Importance.LOW,
        "Samples a metric is computed from.",
        at_least(1),
    ),
    BrokerConfigKey(
        "metrics.sample.window.ms",
        ConfigType.LONG,
        "30000",
        Importance.LOW,
        "Length of one sample of a metric.",
        at_least(1),
    ),
    BrokerConfigKey(
        "metric.reporters",
        ConfigType.LIST,
        "",
        Importance.LOW,
        "Classes that report the metrics.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "metrics.recording.level",
        ConfigType.STRING,
        "INFO",
        Importance.LOW,
        "Level from which on metrics are recorded.",
    ),
    BrokerConfigKey(
        "auto.include.jmx.reporter",
        ConfigType.BOOLEAN,
        "true",
        Importance.LOW,
        "Whether metrics are reported by JMX without a configured reporter.",
    ),
    BrokerConfigKey(
        "kafka.metrics.reporters",
        ConfigType.LIST,
        "",
        Importance.LOW,
        "Classes that report the older metrics of Apache Kafka's own registry.",
    ),
    BrokerConfigKey(
        "kafka.metrics.polling.interval.secs",
        ConfigType.INT,
        "10",
        Importance.LOW,
        "How often the classes of kafka.metrics.reporters are called.",
        at_least(1),
    ),
    BrokerConfigKey(
        "telemetry.max.bytes",
        ConfigType.INT,
        "1048576",
        Importance.LOW,
        "Largest push of metrics a client may make.",
        at_least(1),
    ),
)
