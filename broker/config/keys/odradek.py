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
        "User name for SASL (DIGEST-MD5) to ZooKeeper; Apache Kafka reads it from a JAAS file.",
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
        "When the records inside a produced batch are validated: when-needed (for compaction, timestamp limits, "
        "conversion), or always, as in Apache Kafka. The header and checksum of a batch are always verified.",
        ValidString(("when-needed", "always")),
    ),
    BrokerConfigKey(
        "odradek.event.loop.pause.ms",
        ConfigType.INT,
        "0",
        Importance.LOW,
        "Pauses of the event loop longer than this are logged with their cause, and a summary of delays at the stop. "
        "0 turns it off.",
        at_least(0),
    ),
)
