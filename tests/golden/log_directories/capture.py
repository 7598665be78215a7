"""Writes the directories beside it: a log as Apache Kafka 3.9.1 leaves it after a clean stop, and after a kill.

    python -m tests.golden.log_directories.capture

Needs the jars and confluent-kafka. `expected.json` holds what a consumer of Apache Kafka read.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper

HERE = Path(__file__).parent
NOW = 1_700_000_000_000
TOPIC = "captured"
TOPIC_CONFIG = {
    "segment.bytes": "3000",
    "index.interval.bytes": "200",
    "segment.index.bytes": "4096",
    "retention.ms": "-1",
}


def produce(bootstrap: str) -> None:
    plain = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for number in range(40):
        plain.produce(TOPIC, b"plain %d" % number, b"key %d" % (number % 7), timestamp=NOW + number * 10)
        plain.flush()
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        compressed = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 100})
        for number in range(20):
            compressed.produce(
                TOPIC, f"{codec} {number} ".encode() * 5, b"k", timestamp=NOW + 1000 + number, headers=[("h", b"v")]
            )
        compressed.flush()
    idempotent = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for number in range(7):
        idempotent.produce(TOPIC, b"idempotent %d" % number, timestamp=NOW + 2000 + number)
        idempotent.flush()
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx", "linger.ms": 0})
    transactional.init_transactions()
    for number in range(6):
        transactional.begin_transaction()
        transactional.produce(TOPIC, b"txn %d" % number, b"t", timestamp=NOW + 3000 + number)
        transactional.flush()
        if number % 2:
            transactional.abort_transaction()
        else:
            transactional.commit_transaction()


def consume(bootstrap: str, isolation: str) -> list[tuple[int, int, str]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "capture",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    records = []
    while True:
        message = consumer.poll(10)
        if message is None:
            raise TimeoutError("no answer")
        if message.error():
            break
        records.append((message.offset(), message.timestamp()[1], (message.value() or b"").decode()))
    consumer.close()
    return records


def keep(log_dir: Path, name: str) -> None:
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(log_dir / f"{TOPIC}-0", target / f"{TOPIC}-0")
    for checkpoint in log_dir.glob("*-checkpoint"):
        lines = [line for line in checkpoint.read_text().splitlines()[2:] if line.startswith(f"{TOPIC} ")]
        (target / checkpoint.name).write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        zookeeper = ZooKeeper(Path(directory) / "zookeeper")
        zookeeper.start()
        broker = ApacheBroker(Path(directory) / "broker", zookeeper.new_chroot())
        try:
            broker.start()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.create_topics([NewTopic(TOPIC, 1, 1, config=TOPIC_CONFIG)])[TOPIC].result(30)
            produce(broker.bootstrap)
            expected = {name: consume(broker.bootstrap, name) for name in ("read_uncommitted", "read_committed")}
            (HERE / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")
            keep(broker.log_dir, "killed")
            broker.stop()
            keep(broker.log_dir, "clean")
            shutil.copy(broker.log_dir / ".kafka_cleanshutdown", HERE / "clean")
            shutil.copy(broker.log_dir / "meta.properties", HERE / "clean")
        finally:
            broker.close()
            zookeeper.stop()
    sys.stdout.write(f"captured into {HERE}\n")


if __name__ == "__main__":
    main()
