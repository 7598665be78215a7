"""Writes `internal_topics` beside it: a whole log directory of Apache Kafka 3.9.1 after a clean stop.

    python -m tests.golden.log_directories.capture_internal_topics

It holds `__consumer_offsets` and `__transaction_state` after groups and transactions of librdkafka, and the topic they
worked on, which was compacted. Needs the jars and confluent-kafka.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper

TARGET = Path(__file__).parent / "internal_topics"
NOW = 1_700_000_000_000
TOPIC = "worked-on"
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "3000",
    "index.interval.bytes": "200",
    "segment.index.bytes": "4096",
    "min.cleanable.dirty.ratio": "0.01",
}
BROKER_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "200",
}


def consume_in_group(bootstrap: str, group: str, protocol: str, instance: str | None) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": protocol,
        "enable.auto.commit": False,
        **({"group.instance.id": instance} if instance else {}),
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    while consumer.poll(0.5) is None:
        pass
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7, 'metadata of "7"\té')], asynchronous=False)
    consumer.close()


def transact(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx-é", "linger.ms": 0})
    producer.init_transactions()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "of-transactions"})
    for number in range(4):
        producer.begin_transaction()
        for partition in range(6):
            producer.produce(TOPIC, b"txn %d" % number, b"t%d" % partition, partition, timestamp=NOW + number)
        producer.flush()
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, number)], consumer.consumer_group_metadata())
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    consumer.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        zookeeper = ZooKeeper(Path(directory) / "zookeeper")
        zookeeper.start()
        broker = ApacheBroker(Path(directory) / "broker", zookeeper.new_chroot(), BROKER_SETTINGS)
        try:
            broker.start()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.create_topics([NewTopic(TOPIC, 6, 1, config=TOPIC_CONFIG)])[TOPIC].result(30)
            producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
            for number in range(150):
                value = None if number % 9 == 0 else b"value %d" % number
                producer.produce(TOPIC, value, b"key %d" % (number % 7), 0, timestamp=NOW + number)
                producer.flush()
            consume_in_group(broker.bootstrap, "eager", "range,roundrobin", None)
            consume_in_group(broker.bootstrap, "cooperative", "cooperative-sticky", "static-1")
            transact(broker.bootstrap)
            time.sleep(8)  # the cleaner has been through
            broker.stop()
            shutil.rmtree(TARGET, ignore_errors=True)
            shutil.copytree(broker.log_dir, TARGET, ignore=shutil.ignore_patterns(".lock", "*.deleted"))
        finally:
            broker.close()
            zookeeper.stop()
    sys.stdout.write(f"captured into {TARGET}\n")


if __name__ == "__main__":
    main()
