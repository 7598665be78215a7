"""Share groups (KIP-932). Known to the table, so that an operator's file is understood; brokers in ZooKeeper mode have
none."""

from __future__ import annotations

from typing import Final

from odradek.broker.config_keys.key import BrokerConfigKey
from odradek.storage.config_def import ConfigType, Importance, at_least, between

SHARE_GROUP_KEYS: Final = (
    BrokerConfigKey(
        "group.share.session.timeout.ms",
        ConfigType.INT,
        "45000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.min.session.timeout.ms",
        ConfigType.INT,
        "45000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.max.session.timeout.ms",
        ConfigType.INT,
        "60000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.min.heartbeat.interval.ms",
        ConfigType.INT,
        "5000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.max.heartbeat.interval.ms",
        ConfigType.INT,
        "15000",
        Importance.MEDIUM,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "group.share.max.size",
        ConfigType.SHORT,
        "200",
        Importance.MEDIUM,
        "",
        between(10, 1000),
    ),
    BrokerConfigKey(
        "group.share.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.MEDIUM,
        "",
        internal=True,
    ),
    BrokerConfigKey(
        "group.share.delivery.count.limit",
        ConfigType.INT,
        "5",
        Importance.MEDIUM,
        "",
        between(2, 10),
    ),
    BrokerConfigKey(
        "group.share.record.lock.duration.ms",
        ConfigType.INT,
        "30000",
        Importance.MEDIUM,
        "",
        between(1000, 60000),
    ),
    BrokerConfigKey(
        "group.share.min.record.lock.duration.ms",
        ConfigType.INT,
        "15000",
        Importance.MEDIUM,
        "",
        between(1000, 30000),
    ),
    BrokerConfigKey(
        "group.share.max.record.lock.duration.ms",
        ConfigType.INT,
        "60000",
        Importance.MEDIUM,
        "",
        between(30000, 3600000),
    ),
    BrokerConfigKey(
        "group.share.max.groups",
        ConfigType.SHORT,
        "10",
        Importance.MEDIUM,
        "",
        between(1, 100),
    ),
    BrokerConfigKey(
        "group.share.partition.max.record.locks",
        ConfigType.INT,
        "200",
        Importance.MEDIUM,
        "",
        between(100, 10000),
    ),
)
