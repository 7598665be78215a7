"""The state of a broker after a clean stop, a kill, and several of each; and Kafka's dump-log on its files."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Aiokafka, Confluent, KafkaPython, Message
from tests.support.processes.apache.tools import Tools
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

NewBroker = Callable[..., Broker]


def commit(broker: Broker, group: str, topic: str, offset: int, metadata: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata)], asynchronous=False)
    finally:
        consumer.close()


def committed(broker: Broker, group: str, topic: str) -> tuple[int, str | None]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], timeout=20)
        return found.offset, found.metadata
    finally:
        consumer.close()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_records_commits_and_configs_survive(new_broker: NewBroker, ending: str) -> None:
    broker = new_broker()
    topic = Admin(broker.bootstrap).create_topic("survivor", 1, {"segment.bytes": "2000", "retention.ms": "-1"})
    messages = [Message(key=b"%d" % i, value=b"v" * 100) for i in range(100)]
    for start in range(0, 100, 10):  # ten batches, which take several segments
        Confluent().produce(broker.bootstrap, topic, messages[start : start + 10], idempotent=True)
    commit(broker, "group", topic, 42, "the answer")
    for _ in range(2):
        getattr(broker, ending)()
        broker.start()
        assert committed(broker, "group", topic) == (42, "the answer")
        received = Aiokafka().consume(broker.bootstrap, topic, len(messages))
        assert [(r.offset, r.key) for r in received] == [(i, m.key) for i, m in enumerate(messages)]
        more = Message(key=b"%d" % len(messages), value=b"after")
        assert KafkaPython().produce(broker.bootstrap, topic, [more]) == [len(messages)]
        messages.append(more)
    config = Admin(broker.bootstrap)
    resource = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ConfigResource.Type.TOPIC, topic)
    described = config.client.describe_configs([resource])[resource].result(20)
    assert described["segment.bytes"].value == "2000"
    assert config.topics()[topic] == 1


def test_a_deleted_topic_stays_deleted(new_broker: NewBroker) -> None:
    broker = new_broker(**{"auto.create.topics.enable": "false"})
    admin = Admin(broker.bootstrap)
    admin.create_topic("deleted", 3)
    admin.create_topic("kept", 3)
    Confluent().produce(broker.bootstrap, "deleted", [Message(key=None, value=b"v")])
    admin.delete_topic("deleted")
    broker.stop()
    broker.start()
    admin = Admin(broker.bootstrap)
    topics = eventually(admin.topics, accept=lambda topics: "kept" in topics)
    assert topics["kept"] == 3
    assert "deleted" not in topics
    admin.create_topic_again("deleted")
    assert Confluent().produce(broker.bootstrap, "deleted", [Message(key=None, value=b"new")]) == [0]


def test_idempotence_holds_across_a_restart(new_broker: NewBroker) -> None:
    """A producer that lives through the restart of its broker neither loses nor repeats a record."""
    broker = new_broker()
    topic = Admin(broker.bootstrap).create_topic("through")
    offsets: list[int] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
    )

    def send(first: int, last: int) -> None:
        for i in range(first, last):
            producer.produce(topic, b"%d" % i, on_delivery=lambda _, message: offsets.append(message.offset()))

    send(0, 100)
    assert producer.flush(20) == 0
    broker.stop()
    send(100, 200)
    broker.start()
    assert producer.flush(30) == 0
    assert offsets == list(range(200))
    received = Confluent().consume(broker.bootstrap, topic, 200)
    assert [r.value for r in received] == [b"%d" % i for i in range(200)]


def test_dump_log_reads_every_file(new_broker: NewBroker, tools: Tools) -> None:
    """Several segments, all codecs, an idempotent producer: Kafka's own tool finds nothing to complain about."""
    broker = new_broker(**{"log.index.interval.bytes": "200"})
    topic = Admin(broker.bootstrap).create_topic("dumped", 1, {"segment.bytes": "4000"})
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for start in range(0, 40, 10):
            messages = [Message(key=b"%d" % i, value=b"value %d " % i * 20) for i in range(start, start + 10)]
            Confluent().produce(broker.bootstrap, topic, messages, codec=codec, idempotent=start % 20 == 0)
    commit(broker, "group", topic, 3, "")
    broker.stop()
    directory = broker.log_dir / f"{topic}-0"
    names = {path.suffix: [] for path in directory.iterdir()} | {"": []}
    for path in sorted(directory.iterdir()):
        names[path.suffix].append(str(path))
    assert len(names[".log"]) >= 3
    assert len(names[".index"]) == len(names[".timeindex"]) == len(names[".log"])
    data = tools.run("dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(names[".log"]))
    assert data.stdout.count("isvalid: true") >= 20
    assert "isvalid: false" not in data.stdout
    assert data.stdout.count("| offset: ") == 200
    indexes = tools.run("dump-log", "--verify-index-only", "--files", ",".join(names[".index"] + names[".timeindex"]))
    entries = tools.run("dump-log", "--index-sanity-check", "--files", ",".join(names[".index"] + names[".timeindex"]))
    for dumped in (data, indexes, entries):
        for complaint in ("Mismatches", "not found", "Exception", "corrupt", "ERROR"):
            assert complaint not in dumped.stdout + dumped.stderr, dumped.stdout + dumped.stderr
    checked = entries.stdout.count("passed sanity check") + entries.stdout.count(" is empty.")  # one batch, no entry
    assert checked == len(names[".index"]) * 2
    assert names[".snapshot"]
    snapshot = tools.run("dump-log", "--files", names[".snapshot"][-1])
    assert "producerId: " in snapshot.stdout
    groups = next(p for p in sorted(broker.log_dir.glob("__consumer_offsets-*/*.log")) if p.stat().st_size)
    offsets = tools.run("dump-log", "--offsets-decoder", "--print-data-log", "--files", str(groups))
    assert '"group":"group"' in offsets.stdout
