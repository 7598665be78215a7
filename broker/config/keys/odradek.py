"""Keys that Apache Kafka does not have."""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey
from odradek.broker.config.keys.validators import HostAndPort, KafkaRelease
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
        "odradek.zookeeper.sasl.jaas.config",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Login for SASL to ZooKeeper, instead of user name and password: an entry as in section Client of the JAAS "
        "file of Apache Kafka, with Krb5LoginModule (GSSAPI) or DigestLoginModule (DIGEST-MD5).",
    ),
    BrokerConfigKey(
        "org.apache.kafka.sasl.oauthbearer.allowed.urls",
        ConfigType.LIST,
        None,
        Importance.MEDIUM,
        "URLs that sasl.oauthbearer.jwks.endpoint.url and sasl.oauthbearer.token.endpoint.url may name; without it "
        "only files. In Apache Kafka it is a system property of Java, and without it every URL is allowed.",
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
        "odradek.as.version",
        ConfigType.STRING,
        "",
        Importance.LOW,
        "For tests of clients: the broker advertises and serves the API versions of this older release of Apache Kafka "
        "(0.10.2 to 3.9), and has its defaults: docs/older-releases.md.",
        KafkaRelease(),
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
    BrokerConfigKey(
        "odradek.metrics.listener",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "Where the metrics are served to Prometheus: host:port, or a port on 127.0.0.1; port 0 takes a free one. "
        "There is no authentication: all who reach the port can read them. Empty turns metrics off.",
        HostAndPort(),
    ),
    BrokerConfigKey(
        "odradek.metrics.max.partitions",
        ConfigType.INT,
        "2000",
        Importance.LOW,
        "A broker that hosts more partitions than this leaves out the metrics of single partitions.",
        at_least(0),
    ),
    BrokerConfigKey(
        "odradek.metrics.max.topics",
        ConfigType.INT,
        "1000",
        Importance.LOW,
        "A broker with traffic on more topics than this leaves out the metrics of single topics.",
        at_least(0),
    ),
    BrokerConfigKey(
        "odradek.metrics.max.groups",
        ConfigType.INT,
        "1000",
        Importance.LOW,
        "A broker that coordinates more groups than this leaves out the metrics of single groups.",
        at_least(0),
    ),
)
