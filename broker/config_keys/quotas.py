"""Quotas: over which time they are measured."""

from __future__ import annotations

from typing import Final

from odradek.broker.config_keys.key import BrokerConfigKey
from odradek.storage.config_def import ConfigType, Importance, at_least

QUOTA_KEYS: Final = (
    BrokerConfigKey(
        "quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "Samples kept to measure client quotas.",
        at_least(1),
    ),
    BrokerConfigKey(
        "replication.quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "Samples kept to measure replication quotas.",
        at_least(1),
    ),
    BrokerConfigKey(
        "alter.log.dirs.replication.quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "Samples kept to measure the quota for moves between directories.",
        at_least(1),
    ),
    BrokerConfigKey(
        "controller.quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "Samples kept to measure quotas for changes of topics.",
        at_least(1),
    ),
    BrokerConfigKey(
        "quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "Length of one sample of client quotas.",
        at_least(1),
    ),
    BrokerConfigKey(
        "replication.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "Length of one sample of replication quotas.",
        at_least(1),
    ),
    BrokerConfigKey(
        "alter.log.dirs.replication.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "Length of one sample of the quota for moves between directories.",
        at_least(1),
    ),
    BrokerConfigKey(
        "controller.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "Length of one sample of the quotas for changes of topics.",
        at_least(1),
    ),
    BrokerConfigKey(
        "client.quota.callback.class",
        ConfigType.CLASS,
        None,
        Importance.LOW,
        "Class that decides which quota a client falls under.",
    ),
)
