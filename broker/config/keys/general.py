"""Keys of the whole broker: identity, sizes, threads, shutdown.

Kafka: ServerConfigs, ReplicationConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.broker.config.keys.validators import NonNull
from odradek.storage.config.config_def import ConfigType, Importance, ValidString, at_least, between
from odradek.storage.config.topic_config_table import GzipLevel

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"

ACL_AUTHORIZER_KEYS: Final = ("super.users", "allow.everyone.if.no.acl.found")
"""Keys of this authorizer. Kafka's table of keys does not have them either."""

GENERAL_KEYS: Final = (
    BrokerConfigKey(
        "broker.id.generation.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.MEDIUM,
        "Whether an id above reserved.broker.max.id is generated for a broker without one.",
    ),
    BrokerConfigKey(
        "reserved.broker.max.id",
        ConfigType.INT,
        "1000",
        Importance.MEDIUM,
        "The largest id an operator may choose; generated ids begin above it.",
        at_least(0),
    ),
    BrokerConfigKey(
        "broker.id",
        ConfigType.INT,
        "-1",
        Importance.HIGH,
        "The id of this broker in its cluster; with -1 one is generated.",
    ),
    BrokerConfigKey(
        "message.max.bytes",
        ConfigType.INT,
        "1048588",
        Importance.HIGH,
        "The largest record batch that is accepted, compressed size included; topics can override it as "
        "max.message.bytes.",
        at_least(0),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "num.io.threads",
        ConfigType.INT,
        "8",
        Importance.HIGH,
        "Threads that handle requests in Apache Kafka. Here one event loop does, whatever the number.",
        at_least(1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "num.replica.alter.log.dirs.threads",
        ConfigType.INT,
        None,
        Importance.HIGH,
        "Threads that move replicas between directories; one a directory if it is not set.",
    ),
    BrokerConfigKey(
        "background.threads",
        ConfigType.INT,
        "10",
        Importance.HIGH,
        "Threads for various background work in Apache Kafka.",
        at_least(1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "request.timeout.ms",
        ConfigType.INT,
        "30000",
        Importance.HIGH,
        "How long a client inside the broker waits for an answer.",
    ),
    BrokerConfigKey(
        "socket.connection.setup.timeout.ms",
        ConfigType.LONG,
        "10000",
        Importance.MEDIUM,
        "How long to wait for a connection to another broker.",
    ),
    BrokerConfigKey(
        "socket.connection.setup.timeout.max.ms",
        ConfigType.LONG,
        "30000",
        Importance.MEDIUM,
        "Longest wait for a connection to another broker; the wait grows with each failure in a row.",
    ),
    BrokerConfigKey(
        "authorizer.class.name",
        ConfigType.STRING,
        "",
        Importance.LOW,
        "The authorizer: kafka.security.authorizer.AclAuthorizer, or the import path of a Python class. Without one "
        "everything is allowed.",
        NonNull(),
    ),
    BrokerConfigKey(
        "early.start.listeners",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "Listeners that accept connections before the authorizer is ready.",
    ),
    BrokerConfigKey(
        "broker.rack",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "The rack of this broker, for the placement of replicas and for reads from the nearest one.",
    ),
    BrokerConfigKey(
        "controlled.shutdown.max.retries",
        ConfigType.INT,
        "3",
        Importance.MEDIUM,
        "Attempts of a controlled shutdown before the broker stops in any case.",
    ),
    BrokerConfigKey(
        "controlled.shutdown.retry.backoff.ms",
        ConfigType.LONG,
        "5000",
        Importance.MEDIUM,
        "Wait between two attempts of a controlled shutdown.",
    ),
    BrokerConfigKey(
        "controlled.shutdown.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.MEDIUM,
        "Whether the broker moves its leaderships to other brokers before it stops.",
    ),
    BrokerConfigKey(
        "delete.topic.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.HIGH,
        "Whether topics can be deleted.",
    ),
    BrokerConfigKey(
        "compression.type",
        ConfigType.STRING,
        "producer",
        Importance.HIGH,
        "Codec of stored batches: producer keeps the producer's codec, uncompressed uses none.",
        ValidString(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "compression.gzip.level",
        ConfigType.INT,
        "-1",
        Importance.MEDIUM,
        "Level of gzip when the broker compresses.",
        GzipLevel(),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "compression.lz4.level",
        ConfigType.INT,
        "9",
        Importance.MEDIUM,
        "Level of lz4 when the broker compresses.",
        between(1, 17),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "compression.zstd.level",
        ConfigType.INT,
        "3",
        Importance.MEDIUM,
        "Level of zstd when the broker compresses.",
        between(-131072, 22),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "max.incremental.fetch.session.cache.slots",
        ConfigType.INT,
        "1000",
        Importance.MEDIUM,
        "Fetch sessions that are remembered for clients and followers.",
        at_least(0),
    ),
    BrokerConfigKey(
        "fetch.max.bytes",
        ConfigType.INT,
        "57671680",
        Importance.MEDIUM,
        "Maximum bytes of a fetch response; a larger first batch is still returned.",
        at_least(1024),
    ),
    BrokerConfigKey(
        "max.request.partition.size.limit",
        ConfigType.INT,
        "2000",
        Importance.MEDIUM,
        "The most partitions one DescribeTopicPartitions answer covers.",
        at_least(1),
    ),
    BrokerConfigKey(
        "unstable.api.versions.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.HIGH,
        "Whether versions of the protocol that are not final are offered.",
        internal=True,
    ),
    BrokerConfigKey(
        "unstable.feature.versions.enable",
        ConfigType.BOOLEAN,
        "false",
        Importance.HIGH,
        "Whether versions of features that are not final are offered.",
        internal=True,
    ),
)
