"""Keys of idempotent and transactional producers.

Kafka: TransactionLogConfigs, TransactionStateManagerConfigs.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.storage.config.config_def import ConfigType, Importance, at_least

TRANSACTION_KEYS: Final = (
    BrokerConfigKey(
        "transaction.state.log.min.isr",
        ConfigType.INT,
        "2",
        Importance.HIGH,
        "In-sync replicas the transaction log needs.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.state.log.load.buffer.size",
        ConfigType.INT,
        "5242880",
        Importance.HIGH,
        "Bytes read at once when the transaction log is loaded.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.state.log.replication.factor",
        ConfigType.SHORT,
        "3",
        Importance.HIGH,
        "Replicas of the transaction log. It is created only when there are as many brokers.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.state.log.num.partitions",
        ConfigType.INT,
        "50",
        Importance.HIGH,
        "Partitions of the transaction log. It must not be changed later.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.state.log.segment.bytes",
        ConfigType.INT,
        "104857600",
        Importance.HIGH,
        "Segment size of the transaction log; small, so that it compacts and loads fast.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.partition.verification.enable",
        ConfigType.BOOLEAN,
        "true",
        Importance.LOW,
        "Whether a transactional append is verified to belong to an ongoing transaction.",
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "producer.id.expiration.ms",
        ConfigType.INT,
        "86400000",
        Importance.LOW,
        "How long the state of an idempotent producer is kept after its last write.",
        at_least(1),
        update_mode=UpdateMode.CLUSTER_WIDE,
    ),
    BrokerConfigKey(
        "producer.id.expiration.check.interval.ms",
        ConfigType.INT,
        "600000",
        Importance.LOW,
        "How often the states of producers that are older than producer.id.expiration.ms are removed.",
        at_least(1),
        internal=True,
    ),
    BrokerConfigKey(
        "transactional.id.expiration.ms",
        ConfigType.INT,
        "604800000",
        Importance.HIGH,
        "How long a transactional id is remembered without use.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.max.timeout.ms",
        ConfigType.INT,
        "900000",
        Importance.HIGH,
        "Longest transaction a producer may ask for.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        ConfigType.INT,
        "10000",
        Importance.LOW,
        "How often transactions that have timed out are aborted.",
        at_least(1),
    ),
    BrokerConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        ConfigType.INT,
        "3600000",
        Importance.LOW,
        "How often transactional ids that have expired are removed.",
        at_least(1),
    ),
)
