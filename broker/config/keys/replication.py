"""Keys of replication between brokers and of leadership.

Kafka: ReplicationConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config.config_def import ConfigType, Importance, ValidString, at_least
from odradek.storage.config.topic_config_table import VersionName

RACK_AWARE_REPLICA_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The only class that `replica.selector.class` may be."""

REPLICATION_KEYS: Final = (
    BrokerConfigKey(
        "controller.socket.timeout.ms",
        ConfigType.INT,
        "30000",
        Importance.MEDIUM,
        "How long the controller waits for the answer of a broker.",
    ),
    BrokerConfigKey(
        "default.replication.factor",
        ConfigType.INT,
        "1",
        Importance.MEDIUM,
        "Replicas of topics that are created automatically or without a number.",
    ),
    BrokerConfigKey(
        "replica.lag.time.max.ms",
        ConfigType.LONG,
        "30000",
        Importance.HIGH,
        "A follower that has not caught up for this long leaves the in-sync replicas.",
    ),
    BrokerConfigKey(
        "replica.socket.timeout.ms",
        ConfigType.INT,
        "30000",
        Importance.HIGH,
        "How long a follower waits for its leader's answer; at least replica.fetch.wait.max.ms.",
    ),
    BrokerConfigKey(
        "replica.socket.receive.buffer.bytes",
        ConfigType.INT,
        "65536",
        Importance.HIGH,
        "Receive buffer of a follower's connection.",
    ),
    BrokerConfigKey(
        "replica.fetch.max.bytes",
        ConfigType.INT,
        "1048576",
        Importance.MEDIUM,
        "Bytes that a follower requests of each partition; a larger first batch is still returned.",
        at_least(0),
    ),
    BrokerConfigKey(
        "replica.fetch.wait.max.ms",
        ConfigType.INT,
        "500",
        Importance.HIGH,
        "How long a follower's fetch may wait for data; less than replica.lag.time.max.ms.",
    ),
    BrokerConfigKey(
        "replica.fetch.backoff.ms",
        ConfigType.INT,
        "1000",
        Importance.MEDIUM,
        "Wait after a follower's fetch has failed.",
        at_least(0),
    ),
    BrokerConfigKey(
        "replica.fetch.min.bytes",
        ConfigType.INT,
        "1",
        Importance.HIGH,
        "Bytes that a leader waits for before it answers a follower.",
    ),
    BrokerConfigKey(
        "replica.fetch.response.max.bytes",
        ConfigType.INT,
        "10485760",
        Importance.MEDIUM,
        "Bytes that a follower requests in one fetch.",
        at_least(0),
    ),
    BrokerConfigKey(
        "num.replica.fetchers",
        ConfigType.INT,
        "1",
        Importance.HIGH,
        "Fetchers a follower has for each leader.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "replica.high.watermark.checkpoint.interval.ms",
        ConfigType.LONG,
        "5000",
        Importance.HIGH,
        "How often high watermarks are saved.",
    ),
    BrokerConfigKey(
        "fetch.purgatory.purge.interval.requests",
        ConfigType.INT,
        "1000",
        Importance.MEDIUM,
        "After how many completed fetches Apache Kafka removes those from its list of waiting requests.",
    ),
    BrokerConfigKey(
        "producer.purgatory.purge.interval.requests",
        ConfigType.INT,
        "1000",
        Importance.MEDIUM,
        "After how many completed produce requests Apache Kafka removes those from its list of waiting requests.",
    ),
    BrokerConfigKey(
        "delete.records.purgatory.purge.interval.requests",
        ConfigType.INT,
        "1",
        Importance.MEDIUM,
        "After how many completed record deletions Apache Kafka removes those from its list of waiting requests.",
    ),
    BrokerConfigKey(
        "auto.leader.rebalance.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.HIGH,
        "Whether leadership is moved back to preferred replicas automatically.",
    ),
    BrokerConfigKey(
        "leader.imbalance.per.broker.percentage",
        ConfigType.INT,
        "10",
        Importance.HIGH,
        "Percentage of a broker's partitions that may be led by others before leadership is moved back.",
    ),
    BrokerConfigKey(
        "leader.imbalance.check.interval.seconds",
        ConfigType.LONG,
        "300",
        Importance.HIGH,
        "How often the controller checks leader.imbalance.per.broker.percentage.",
        at_least(1),
    ),
    BrokerConfigKey(
        "unclean.leader.election.interval.ms",
        ConfigType.LONG,
        "300000",
        Importance.MEDIUM,
        "How often the controller searches for partitions that need an unclean election.",
        at_least(1),
        internal=True,
    ),
    BrokerConfigKey(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.HIGH,
        "Whether a replica that is not in sync may become leader when no other is left. Records can be lost.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "security.inter.broker.protocol",
        ConfigType.STRING,
        "PLAINTEXT",
        Importance.MEDIUM,
        "Security protocol between brokers; not together with inter.broker.listener.name.",
        ValidString(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    ),
    BrokerConfigKey(
        "inter.broker.protocol.version",
        ConfigType.STRING,
        "3.9-IV0",
        Importance.MEDIUM,
        "Version of Kafka that decides the requests between brokers and the stored formats; older than the brokers "
        "while a cluster is upgraded.",
        VersionName(),
    ),
    BrokerConfigKey(
        "inter.broker.listener.name",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Listener for requests between brokers; by default the one named after security.inter.broker.protocol.",
    ),
    BrokerConfigKey(
        "replica.selector.class",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Class that chooses the replica for consumers to read from; without one they read from the leader.",
    ),
)
