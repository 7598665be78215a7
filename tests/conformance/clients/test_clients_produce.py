"""Producing: acks 0, 1 and all, both timestamp types, idempotence, limits, and topics that are created by producing."""

from __future__ import annotations

import time
from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Aiokafka,
    Client,
    Confluent,
    KafkaPython,
    Message,
    python_clients,
)

pytestmark = pytest.mark.oracle

each_client = pytest.mark.parametrize("client", python_clients(), ids=lambda client: client.name)
PAST = 1_500_000_000_000  # a create time far from any clock, inside every client's range


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Admin:
    return Admin(broker.bootstrap)


@each_client
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client, acks: str) -> None:
    topic = admin.create_topic(unique(f"acks-{acks}"))
    messages = [Message(key=b"%d" % i, value=b"v") for i in range(100)]
    offsets = client.produce(broker.bootstrap, topic, messages, acks=acks)
    assert offsets == ([] if acks == "0" else list(range(100)))
    received = client.consume(broker.bootstrap, topic, 100)
    assert [r.key for r in received] == [m.key for m in messages]


@each_client
def test_create_time_is_the_producers(
    broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client
) -> None:
    topic = admin.create_topic(unique("create-time"))
    stamps = [PAST + delta for delta in (0, 5, 3, 10_000, 7)]
    client.produce(broker.bootstrap, topic, [Message(key=None, value=b"v", timestamp=stamp) for stamp in stamps])
    received = client.consume(broker.bootstrap, topic, len(stamps))
    assert [(r.timestamp, r.timestamp_type) for r in received] == [(stamp, CREATE_TIME) for stamp in stamps]


@each_client
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_log_append_time_is_the_brokers(
    broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client, codec: str
) -> None:
    """With message.timestamp.type=LogAppendTime every record of a batch carries the time of its append."""
    topic = admin.create_topic(unique("append-time"), config={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    messages = [Message(key=None, value=b"v", timestamp=PAST + i) for i in range(20)]
    client.produce(broker.bootstrap, topic, messages, codec=codec)
    after = int(time.time() * 1000)
    received = client.consume(broker.bootstrap, topic, 20)
    assert {r.timestamp_type for r in received} == {LOG_APPEND_TIME}
    assert all(before <= r.timestamp <= after for r in received)


@each_client
def test_idempotent_producer(broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client) -> None:
    topic = admin.create_topic(unique("idempotent"))
    messages = [Message(key=None, value=b"%d" % i) for i in range(500)]
    assert client.produce(broker.bootstrap, topic, messages, idempotent=True) == list(range(500))
    received = client.consume(broker.bootstrap, topic, 500)
    assert [r.value for r in received] == [m.value for m in messages]


@each_client
def test_an_answer_names_the_first_offset_of_each_batch(
    broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client
) -> None:
    """Three rounds: the answered offsets go on where the last round ended, whatever batches the client made."""
    topic = admin.create_topic(unique("offsets"))
    for start in (0, 30, 60):
        sent = [Message(key=None, value=b"x" * 900) for _ in range(30)]
        assert client.produce(broker.bootstrap, topic, sent) == list(range(start, start + 30))


@pytest.mark.parametrize("client", [Aiokafka(), Confluent(), KafkaPython()], ids=lambda client: client.name)
def test_a_topic_is_created_by_producing_to_it(
    broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client
) -> None:
    topic = unique("auto")
    assert client.produce(broker.bootstrap, topic, [Message(key=None, value=b"first")]) == [0]
    assert admin.topics()[topic] == 1


def test_a_batch_above_max_message_bytes_is_refused(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("small"), config={"max.message.bytes": "1000"})
    assert Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"x" * 800)]) == [0]
    answers: list[KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"x" * 1001, on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(20) == 0
    assert [error.code() for error in answers if error] == [KafkaError.MSG_SIZE_TOO_LARGE]
    assert Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"again")]) == [1]


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(
    broker: Broker, admin: Admin, unique: Callable[[str], str]
) -> None:
    topic = admin.create_topic(unique("compacted"), config={"cleanup.policy": "compact"})
    answers: list[KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"no key", on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(20) == 0
    assert [error.code() for error in answers if error] == [KafkaError.INVALID_RECORD]
    assert Confluent().produce(broker.bootstrap, topic, [Message(key=b"k", value=b"v")]) == [0]


def test_many_partitions_in_one_request(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("wide"), partitions=20)
    offsets: dict[int, list[int]] = {}

    def delivered(error: KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None
        offsets.setdefault(message.partition(), []).append(message.offset())

    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for i in range(1000):
        producer.produce(topic, b"v", partition=i % 20, on_delivery=delivered)
    assert producer.flush(20) == 0
    assert offsets == {partition: list(range(50)) for partition in range(20)}


def test_large_records_up_to_the_default_limit(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    """1,048,588 bytes is the default of message.max.bytes; librdkafka's own limit is put out of the way."""
    topic = admin.create_topic(unique("large"))
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 2_000_000})
    answers: list[KafkaError | None] = []
    overhead = 61 + 12  # batch header, and the record's own lengths and deltas: below a page either way
    for size in (1_048_588 - overhead - 100, 1_048_588 + 100):
        producer.produce(topic, bytes(size), on_delivery=lambda error, _: answers.append(error))
        assert producer.flush(20) == 0
    assert answers[0] is None
    assert answers[1] is not None
    assert answers[1].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_producing_to_a_partition_that_does_not_exist(
    broker: Broker, admin: Admin, unique: Callable[[str], str]
) -> None:
    topic = admin.create_topic(unique("one-partition"))
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    answers: list[KafkaError | None] = []
    try:
        producer.produce(topic, b"v", partition=7, on_delivery=lambda error, _: answers.append(error))
        producer.flush(10)
        codes = [error.code() for error in answers if error]
    except KafkaException as refused:
        codes = [refused.args[0].code()]
    assert codes == [KafkaError._UNKNOWN_PARTITION]
