"""Keys of compaction.

Kafka: CleanerConfig.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config.config_def import ConfigType, Importance, at_least, between

LOG_CLEANER_KEYS: Final = (
    BrokerConfigKey(
        "log.cleaner.threads",
        ConfigType.INT,
        "1",
        Importance.MEDIUM,
        "Compactions that may run at the same time.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.io.max.bytes.per.second",
        ConfigType.DOUBLE,
        "1.7976931348623157E308",
        Importance.MEDIUM,
        "Bytes a second that compaction may read and write.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.dedupe.buffer.size",
        ConfigType.LONG,
        "134217728",
        Importance.MEDIUM,
        "Memory for the keys of the logs being compacted.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.io.buffer.size",
        ConfigType.INT,
        "524288",
        Importance.MEDIUM,
        "Memory for the data of the logs being compacted.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.io.buffer.load.factor",
        ConfigType.DOUBLE,
        "0.9",
        Importance.MEDIUM,
        "Maximum load of the key buffer; a higher load holds more keys and makes lookups slower.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.backoff.ms",
        ConfigType.LONG,
        "15000",
        Importance.MEDIUM,
        "Wait when there is nothing to compact.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.min.cleanable.ratio",
        ConfigType.DOUBLE,
        "0.5",
        Importance.MEDIUM,
        "Share of a log that must be uncompacted before it is compacted.",
        between(0, 1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.MEDIUM,
        "Whether logs are compacted. Without it the topic of committed offsets grows without limit.",
    ),
    BrokerConfigKey(
        "log.cleaner.delete.retention.ms",
        ConfigType.LONG,
        "86400000",
        Importance.MEDIUM,
        "How long tombstones are kept, so that a consumer that reads from the start sees them.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.min.compaction.lag.ms",
        ConfigType.LONG,
        "0",
        Importance.MEDIUM,
        "Age below which a record is not compacted away.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "log.cleaner.max.compaction.lag.ms",
        ConfigType.LONG,
        "9223372036854775807",
        Importance.MEDIUM,
        "Age of a record above which its log is compacted even below log.cleaner.min.cleanable.ratio.",
        at_least(1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
)
