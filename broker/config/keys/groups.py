"""Keys of consumer groups and committed offsets.

Kafka: GroupCoordinatorConfig, OffsetConfig.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.storage.config.config_def import CaseInsensitiveValidString, ConfigType, Importance, ValidList, at_least

ASSIGNORS: Final = (
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
)
"""The values of `group.consumer.assignors`: Apache Kafka's own classes. Others would need a JVM."""

GROUP_KEYS: Final = (
    BrokerConfigKey(
        "group.min.session.timeout.ms",
        ConfigType.INT,
        "6000",
        Importance.MEDIUM,
        "Shortest session timeout a consumer may ask for.",
    ),
    BrokerConfigKey(
        "group.max.session.timeout.ms",
        ConfigType.INT,
        "1800000",
        Importance.MEDIUM,
        "Longest session timeout a consumer may ask for.",
    ),
    BrokerConfigKey(
        "group.initial.rebalance.delay.ms",
        ConfigType.INT,
        "3000",
        Importance.MEDIUM,
        "How long an empty group waits for further consumers before its first rebalance.",
    ),
    BrokerConfigKey(
        "group.max.size",
        ConfigType.INT,
        "2147483647",
        Importance.MEDIUM,
        "Consumers a group may have.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.coordinator.rebalance.protocols",
        ConfigType.LIST,
        "classic",
        Importance.MEDIUM,
        "Supported rebalance protocols; in ZooKeeper mode only classic.",
        ValidList(("consumer", "classic", "share", "unknown")),
    ),
    BrokerConfigKey(
        "group.coordinator.threads",
        ConfigType.INT,
        "1",
        Importance.MEDIUM,
        "Threads of the new group coordinator.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.coordinator.append.linger.ms",
        ConfigType.INT,
        "10",
        Importance.MEDIUM,
        "How long the new group coordinator collects writes.",
        at_least(0),
    ),
    BrokerConfigKey(
        "group.coordinator.new.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.MEDIUM,
        "Whether the new group coordinator is used.",
        internal=True,
    ),
    BrokerConfigKey(
        "offset.metadata.max.bytes",
        ConfigType.INT,
        "4096",
        Importance.HIGH,
        "Largest text a consumer may store with an offset.",
    ),
    BrokerConfigKey(
        "offsets.load.buffer.size",
        ConfigType.INT,
        "5242880",
        Importance.HIGH,
        "Bytes read at once when committed offsets are loaded.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.topic.replication.factor",
        ConfigType.SHORT,
        "3",
        Importance.HIGH,
        "Replicas of the topic of committed offsets. It is created only when there are as many brokers.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.topic.num.partitions",
        ConfigType.INT,
        "50",
        Importance.HIGH,
        "Partitions of the topic of committed offsets. It must not be changed later.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.topic.segment.bytes",
        ConfigType.INT,
        "104857600",
        Importance.HIGH,
        "Segment size of the topic of committed offsets; small, so that it compacts and loads fast.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.topic.compression.codec",
        ConfigType.INT,
        "0",
        Importance.HIGH,
        "Number of the codec for the topic of committed offsets.",
    ),
    BrokerConfigKey(
        "offsets.retention.minutes",
        ConfigType.INT,
        "10080",
        Importance.HIGH,
        "How long offsets are kept after the group has become empty, or since the commit of a consumer "
        "without a group.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.retention.check.interval.ms",
        ConfigType.LONG,
        "600000",
        Importance.HIGH,
        "How often expired offsets are removed.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.commit.timeout.ms",
        ConfigType.INT,
        "5000",
        Importance.HIGH,
        "How long a commit waits for the replicas of the offsets topic.",
        at_least(1),
    ),
    BrokerConfigKey(
        "offsets.commit.required.acks",
        ConfigType.SHORT,
        "-1",
        Importance.HIGH,
        "Acknowledgements that a commit needs; the default should not be changed.",
    ),
    BrokerConfigKey(
        "group.consumer.session.timeout.ms",
        ConfigType.INT,
        "45000",
        Importance.MEDIUM,
        "Session timeout in the consumer protocol (KIP-848).",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.min.session.timeout.ms",
        ConfigType.INT,
        "45000",
        Importance.MEDIUM,
        "Shortest session timeout in the consumer protocol.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.max.session.timeout.ms",
        ConfigType.INT,
        "60000",
        Importance.MEDIUM,
        "Longest session timeout in the consumer protocol.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        Importance.MEDIUM,
        "Time between two heartbeats in the consumer protocol.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.min.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        Importance.MEDIUM,
        "Shortest time between two heartbeats in the consumer protocol.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.max.heartbeat.interval.ms",
        ConfigType.INT,
        "15000",
        Importance.MEDIUM,
        "Longest time between two heartbeats in the consumer protocol.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.max.size",
        ConfigType.INT,
        "2147483647",
        Importance.MEDIUM,
        "Members a group of the consumer protocol may have.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.consumer.assignors",
        ConfigType.LIST,
        ",".join(ASSIGNORS),
        Importance.MEDIUM,
        "Classes of the server-side assignors, the default one first.",
    ),
    BrokerConfigKey(
        "group.consumer.migration.policy",
        ConfigType.STRING,
        "disabled",
        Importance.MEDIUM,
        "Whether groups may change between the classic and the consumer protocol.",
        CaseInsensitiveValidString(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
        internal=True,
    ),
)
