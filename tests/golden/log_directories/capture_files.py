"""Writes `files/` beside it: topics of every kind as Apache Kafka 3.9.1 leaves them after a clean stop.

    python -m tests.golden.log_directories.capture_files

Needs the jars. `steps.json` holds what was done, in order and with the broker's time: the very produce requests, so
that `test_log_directory_files` can do the same to our storage and compare the bytes.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from odradek.controller.tree.metadata_tree import GetData, Multi, SetData
from odradek.controller.tree.zookeeper_tree import ZooKeeperNodes
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from tests.support.admin import Admin
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

FILES = Path(__file__).parent / "files"
NOW = 1_700_000_000_000
NOT_READY = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
SETTINGS = {
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.cleaner.backoff.ms": "300",
}
CODECS = {codec.name.lower(): codec for codec in CompressionType if codec}
TOPICS: dict[str, dict[str, str]] = {
    "default-interval": {"segment.bytes": "14000"},
    "small-interval": {"segment.bytes": "1500", "index.interval.bytes": "100", "segment.index.bytes": "64"},
    **{name: {"segment.bytes": "1500", "index.interval.bytes": "200"} for name in CODECS},
    "idempotent": {"segment.bytes": "500"},
    "epochs": {"segment.bytes": "500"},
    "retained": {"segment.bytes": "500", "retention.bytes": "900"},
    "trimmed": {"segment.bytes": "500"},
    "emptied": {"segment.bytes": "500"},
    "by-time": {"segment.ms": "1000"},
    "append-time": {"message.timestamp.type": "LogAppendTime", "segment.bytes": "500"},
    "compacted": {"cleanup.policy": "compact", "segment.bytes": "500", "min.cleanable.dirty.ratio": "1.0"},
}


class Capture:
    """Does things to a broker and notes them."""

    def __init__(self, broker: ApacheBroker) -> None:
        self.broker = broker
        self.steps: list[dict[str, object]] = []
        self.random = random.Random(9)

    def note(self, **step: object) -> None:
        self.steps.append({"at": int(time.time() * 1000), **step})

    def produce(self, topic: str, records: list[SimpleRecord], **options: int) -> None:
        data = bytes(build_batch(records, **options))
        partition = {"index": 0, "records": memoryview(data)}
        request = build(
            ApiKey.PRODUCE, acks=-1, timeout_ms=10_000, topic_data=[{"name": topic, "partition_data": [partition]}]
        )
        with RawClient(self.broker.host, self.broker.port) as client:
            answer = eventually(
                lambda: client.call(request, 9).responses[0].partition_responses[0],
                accept=lambda answer: answer.error_code not in NOT_READY,
            )
        assert answer.error_code == ErrorCode.NONE, answer
        self.note(produce=topic, records=data.hex())

    def records(self, count: int, size: int = 20, timestamp: int = NOW) -> list[SimpleRecord]:
        return [
            SimpleRecord(
                timestamp + self.random.randrange(1000),
                self.random.choice((None, b"key")),
                self.random.choice((None, b"%x" % self.random.getrandbits(size * 4))),
                (("h", b"v"), ("null", None)) if self.random.random() < 0.3 else (),
            )
            for _ in range(count)
        ]


def write_before_the_restarts(capture: Capture) -> None:
    for number in range(24):
        capture.produce("default-interval", capture.records(1 + number % 3, 400, NOW + number * 100))
    for number in range(30):
        capture.produce("small-interval", capture.records(1 + number % 2, 30, NOW + number * 10 - number % 7 * 2000))
    for name, codec in CODECS.items():
        for number in range(12):
            capture.produce(name, capture.records(5, 60, NOW + number * 1000), compression_type=codec)
    for number in range(12):
        capture.produce("retained", capture.records(2, 40, NOW + number * 1000))
        capture.produce("trimmed", capture.records(2, 40, NOW + number * 1000))
        capture.produce("append-time", capture.records(2, 40, NOW + number * 1000))
        capture.produce("by-time", capture.records(1, 10, NOW + number * 400))
    for number in range(4):
        capture.produce("emptied", capture.records(2, 40, NOW + number * 1000))
    for number in range(20):
        key = b"key %d" % (number % 3)
        capture.produce("compacted", [SimpleRecord(NOW + number, key, b"%x" % capture.random.getrandbits(200))])
    produce_idempotently(capture, range(2))


def produce_idempotently(capture: Capture, rounds: range) -> None:
    """Three producers, whose times lie at the capture's own: one of a day before would be forgotten."""
    for number in rounds:
        for producer_id in range(3):
            records = capture.records(2, 30, int(time.time() * 1000) - 5000)
            capture.produce("idempotent", records, producer_id=producer_id, producer_epoch=0, base_sequence=number * 2)


def move_log_starts(capture: Capture, admin: Admin) -> None:
    for topic, offset in (("trimmed", 13), ("emptied", 8)):
        partition = TopicPartition(topic, 0, offset)
        admin.client.delete_records([partition])[partition].result(30)
        capture.note(delete_records=topic, offset=offset)


def compact(capture: Capture, admin: Admin) -> None:
    entry = ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "compacted", incremental_configs=[entry])
    admin.client.incremental_alter_configs([resource])[resource].result(30)
    checkpoint = capture.broker.log_dir / "cleaner-offset-checkpoint"
    eventually(lambda: checkpoint.exists() and re.search(r"^compacted 0 \d+$", checkpoint.read_text(), re.MULTILINE))
    capture.note(clean="compacted")


async def raise_leader_epoch(address: str, topic: str) -> None:
    """What an election does in a larger cluster."""
    hosts, _, chroot = address.partition("/")
    nodes = ZooKeeperNodes(hosts, f"/{chroot}")
    await nodes.connect()
    path = f"/brokers/topics/{topic}/partitions/0/state"
    (node,) = await nodes.submit([GetData(path)])
    state = json.loads(node.data)
    state["leader_epoch"] += 3
    await nodes.submit([Multi((SetData(path, json.dumps(state).encode()),))])
    await nodes.close()


def settled(log_dir: Path) -> bool:
    """Whether retention is done and what was deleted is gone."""
    _, *later = [path.stat().st_size for path in sorted(log_dir.glob("retained-0/*.log"))]
    is_retained = sum(later) < int(TOPICS["retained"]["retention.bytes"])
    return is_retained and not list(log_dir.glob("*/*.deleted"))


def kept_files(log_dir: Path) -> Iterator[Path]:
    for path in sorted(log_dir.rglob("*")):
        if path.is_file() and path.name not in (".lock", "meta.properties"):
            yield path


def run(broker: ApacheBroker, address: str) -> Capture:
    capture = Capture(broker)
    broker.start()
    admin = Admin(broker.bootstrap)
    for topic, config in TOPICS.items():
        admin.create_topic(topic, 1, config)
    write_before_the_restarts(capture)
    capture.produce("epochs", capture.records(2, 100))
    move_log_starts(capture, admin)
    compact(capture, admin)
    eventually(lambda: settled(broker.log_dir))
    for restart in range(2):
        broker.stop()
        asyncio.run(raise_leader_epoch(address, "epochs"))
        broker.start()
        capture.note(restart=True)
        capture.note(leader_epoch="epochs", epoch=3 + restart * 3)
        for number in range(3):
            capture.produce("epochs", capture.records(2, 100, NOW + number * 1000))
        produce_idempotently(capture, range(2 + restart * 2, 4 + restart * 2))
    eventually(lambda: settled(broker.log_dir))
    broker.stop()
    return capture


def written_down(steps: list[dict[str, object]]) -> str:
    """Settings, topics and steps as JSON, a step a line."""
    lines = ",\n".join(json.dumps(step) for step in steps)
    return f'{{"settings": {json.dumps(SETTINGS)},\n"topics": {json.dumps(TOPICS)},\n"steps": [\n{lines}\n]}}\n'


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        zookeeper = ZooKeeper(Path(directory) / "zookeeper")
        zookeeper.start()
        address = zookeeper.new_chroot()
        broker = ApacheBroker(Path(directory) / "broker", address, SETTINGS)
        try:
            capture = run(broker, address)
            shutil.rmtree(FILES, ignore_errors=True)
            for path in kept_files(broker.log_dir):
                kept = FILES / path.relative_to(broker.log_dir)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, kept)
            (FILES / "steps.json").write_text(written_down(capture.steps))
        finally:
            broker.close()
            zookeeper.stop()
    sys.stdout.write(f"captured into {FILES}\n")


if __name__ == "__main__":
    main()
