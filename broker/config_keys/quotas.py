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
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "replication.quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "alter.log.dirs.replication.quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "controller.quota.window.num",
        ConfigType.INT,
        "11",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "replication.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "alter.log.dirs.replication.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "controller.quota.window.size.seconds",
        ConfigType.INT,
        "1",
        Importance.LOW,
        "",
        at_least(1),
    ),
    BrokerConfigKey(
        "client.quota.callback.class",
        ConfigType.CLASS,
        None,
        Importance.LOW,
        "",
    ),
)
