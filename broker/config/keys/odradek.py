"""Keys that Apache Kafka does not have."""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.storage.config.config_def import ConfigType, Importance, ValidString, at_least

ODRADEK_KEYS: Final = (
    BrokerConfigKey(
        "metadata.dir",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "Where a broker without ZooKeeper keeps the cluster's metadata; the first of log.dirs if it is not set.",
    ),
    BrokerConfigKey(
        "odradek.zookeeper.sasl.username",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "The user as whom the broker logs in to ZooKeeper with SASL (DIGEST-MD5); a JVM reads it from a JAAS file.",
    ),
    BrokerConfigKey(
        "odradek.zookeeper.sasl.password",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "The password of odradek.zookeeper.sasl.username.",
    ),
    BrokerConfigKey(
        "odradek.validate.records",
        ConfigType.STRING,
        "when-needed",
        Importance.MEDIUM,
        "When the single records of a produced batch are looked at: when something depends on them (compaction, "
        "timestamp limits, conversion), or always, as Apache Kafka does. "
        "The header and checksum of a batch are always verified.",
        ValidString(("when-needed", "always")),
    ),
    BrokerConfigKey(
        "odradek.event.loop.pause.ms",
        ConfigType.INT,
        "0",
        Importance.LOW,
        "The event loop is watched, and what holds it up for longer than this is logged; how late things were comes "
        "with the stop. 0 does not watch.",
        at_least(0),
    ),
)
