"""Keys of share groups (KIP-932), so that files with them can be read. Brokers in ZooKeeper mode have no share groups.

Kafka: ShareGroupConfig.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.storage.config.config_def import ConfigType, Importance, at_least, between

SHARE_GROUP_KEYS: Final = (
    BrokerConfigKey(
        "group.share.session.timeout.ms",
        ConfigType.INT,
        "45000",
        Importance.MEDIUM,
        "Session timeout of share groups.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.min.session.timeout.ms",
        ConfigType.INT,
        "45000",
        Importance.MEDIUM,
        "Shortest session timeout of share groups.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.max.session.timeout.ms",
        ConfigType.INT,
        "60000",
        Importance.MEDIUM,
        "Longest session timeout of share groups.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        Importance.MEDIUM,
        "Time between two heartbeats in share groups.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.min.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        Importance.MEDIUM,
        "Shortest time between two heartbeats in share groups.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.max.heartbeat.interval.ms",
        ConfigType.INT,
        "15000",
        Importance.MEDIUM,
        "Longest time between two heartbeats in share groups.",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.max.size",
        ConfigType.SHORT,
        "200",
        Importance.MEDIUM,
        "Members a share group may have.",
        between(10, 1000),
    ),
    BrokerConfigKey(
        "group.share.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.MEDIUM,
        "Whether share groups are offered.",
        internal=True,
    ),
    BrokerConfigKey(
        "group.share.delivery.count.limit",
        ConfigType.INT,
        "5",
        Importance.MEDIUM,
        "How often a record of a share group is delivered at most.",
        between(2, 10),
    ),
    BrokerConfigKey(
        "group.share.record.lock.duration.ms",
        ConfigType.INT,
        "30000",
        Importance.MEDIUM,
        "How long a delivered record is locked for its consumer.",
        between(1000, 60000),
    ),
    BrokerConfigKey(
        "group.share.min.record.lock.duration.ms",
        ConfigType.INT,
        "15000",
        Importance.MEDIUM,
        "Shortest lock of a record.",
        between(1000, 30000),
    ),
    BrokerConfigKey(
        "group.share.max.record.lock.duration.ms",
        ConfigType.INT,
        "60000",
        Importance.MEDIUM,
        "Longest lock of a record.",
        between(30000, 3600000),
    ),
    BrokerConfigKey(
        "group.share.max.groups",
        ConfigType.SHORT,
        "10",
        Importance.MEDIUM,
        "Maximum number of share groups.",
        between(1, 100),
    ),
    BrokerConfigKey(
        "group.share.partition.max.record.locks",
        ConfigType.INT,
        "200",
        Importance.MEDIUM,
        "Records of a partition that may be locked at a time.",
        between(100, 10000),
    ),
)
