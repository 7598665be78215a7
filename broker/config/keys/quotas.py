"""Keys of quotas: their measurement, and the quotas of a broker, which can be set only as dynamic configs.

Kafka: QuotaConfigs, QuotaConfigs.brokerQuotaConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.broker.config.keys.validators import PythonClassPath
from odradek.storage.config.config_def import ConfigDef, ConfigKey, ConfigType, Importance, at_least

LEADER_BYTES_PER_SECOND: Final = "leader.replication.throttled.rate"
FOLLOWER_BYTES_PER_SECOND: Final = "follower.replication.throttled.rate"
ALTER_LOG_DIRS_BYTES_PER_SECOND: Final = "replica.alter.log.dirs.io.max.bytes.per.second"

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
        "Python class that decides the quotas of clients (docs/quotas.md).",
        PythonClassPath(),
    ),
)

_UNLIMITED: Final = str(2**63 - 1)

BROKER_QUOTAS: Final = ConfigDef(
    (
        ConfigKey(
            LEADER_BYTES_PER_SECOND,
            ConfigType.LONG,
            _UNLIMITED,
            Importance.MEDIUM,
            "Bytes a second that leaders send to throttled replicas, in all.",
            at_least(0),
        ),
        ConfigKey(
            FOLLOWER_BYTES_PER_SECOND,
            ConfigType.LONG,
            _UNLIMITED,
            Importance.MEDIUM,
            "Bytes a second that throttled replicas fetch, in all.",
            at_least(0),
        ),
        ConfigKey(
            ALTER_LOG_DIRS_BYTES_PER_SECOND,
            ConfigType.LONG,
            _UNLIMITED,
            Importance.MEDIUM,
            "Bytes a second that are copied between the log directories of a broker, in all.",
            at_least(0),
        ),
    )
)
