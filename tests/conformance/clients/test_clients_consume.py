"""Consuming: from the start, by timestamp, at the end, past it, while records arrive, and over many topics at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.errors import OffsetOutOfRangeError
from aiokafka.structs import TopicPartition as AiokafkaTopicPartition
from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic
from kafka.structs import TopicPartition as KafkaPythonTopicPartition

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.clients import Client, Confluent, Message, python_clients

pytestmark = pytest.mark.oracle

each_client = pytest.mark.parametrize("client", python_clients(), ids=lambda client: client.name)
BASE = 1_600_000_000_000


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Admin:
    return Admin(broker.bootstrap)


@pytest.fixture(scope="module")
def stamped(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> str:
    """A topic of 100 records in four batches, one second between records: record i has the time BASE + i s."""
    topic = admin.create_topic(unique("stamped"))
    for start in range(0, 100, 25):
        messages = [
            Message(key=b"%d" % i, value=b"v" * 50, timestamp=BASE + i * 1000) for i in range(start, start + 25)
        ]
        Confluent().produce(broker.bootstrap, topic, messages, codec="zstd" if start % 50 else "none")
    return topic


TIMES = {
    "before the first": (BASE - 1, 0),
    "exactly one in a batch": (BASE + 33_000, 33),
    "between two": (BASE + 33_001, 34),
    "the first of a batch": (BASE + 50_000, 50),
    "the last": (BASE + 99_000, 99),
    "after the last": (BASE + 99_001, None),
}


def test_offsets_for_times_confluent(broker: Broker, stamped: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "not-used"})
    try:
        for timestamp, offset in TIMES.values():
            asked = [confluent_kafka.TopicPartition(stamped, 0, timestamp)]
            [found] = consumer.offsets_for_times(asked, timeout=20)
            assert found.offset == (confluent_kafka.OFFSET_END if offset is None else offset)
    finally:
        consumer.close()


def test_offsets_for_times_kafka_python(broker: Broker, stamped: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap)
    try:
        partition = KafkaPythonTopicPartition(stamped, 0)
        for timestamp, offset in TIMES.values():
            found = consumer.offsets_for_times({partition: timestamp})[partition]
            assert (found and (found.offset, found.timestamp)) == (offset and (offset, BASE + offset * 1000)) or (
                offset == 0 and found.offset == 0
            )
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 100}
    finally:
        consumer.close()


def test_offsets_for_times_aiokafka(broker: Broker, stamped: str) -> None:
    async def run() -> None:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
            partition = AiokafkaTopicPartition(stamped, 0)
            for timestamp, offset in TIMES.values():
                found = (await consumer.offsets_for_times({partition: timestamp}))[partition]
                assert (None if found is None else found.offset) == offset
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 100}

    asyncio.run(asyncio.wait_for(run(), 30))


@each_client
@pytest.mark.parametrize("offset", [0, 1, 24, 25, 37, 99])
def test_reading_starts_at_any_offset(broker: Broker, stamped: str, client: Client, offset: int) -> None:
    count = min(10, 100 - offset)
    received = client.consume(broker.bootstrap, stamped, count, offset=offset)
    assert [r.offset for r in received] == list(range(offset, offset + count))
    assert [r.timestamp for r in received] == [BASE + i * 1000 for i in range(offset, offset + count)]


def test_an_offset_out_of_range_is_reported_confluent(broker: Broker, stamped: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "not-used", "auto.offset.reset": "error"}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(stamped, 0, 101)])
        message = consumer.poll(20)
        assert message is not None
        assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    finally:
        consumer.close()


def test_an_offset_out_of_range_is_reported_aiokafka(broker: Broker, stamped: str) -> None:
    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none")
        async with consumer:
            partition = AiokafkaTopicPartition(stamped, 0)
            consumer.assign([partition])
            consumer.seek(partition, 101)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.getone()

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 100)])
def test_an_offset_out_of_range_is_reset(broker: Broker, stamped: str, reset: str, first: int) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "not-used",
            "auto.offset.reset": reset,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(stamped, 0, 5000)])
        message = consumer.poll(20)
        assert message is not None
        assert message.offset() == first
    finally:
        consumer.close()


@pytest.mark.parametrize("where", ["beginning", "end", "tail"])
def test_logical_offsets(broker: Broker, stamped: str, where: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "not-used", "enable.partition.eof": True}
    )
    asked = {"beginning": confluent_kafka.OFFSET_BEGINNING, "end": confluent_kafka.OFFSET_END, "tail": -2000 - 7}[where]
    try:
        consumer.assign([confluent_kafka.TopicPartition(stamped, 0, asked)])
        message = consumer.poll(20)
        assert message is not None
        assert message.offset() == {"beginning": 0, "end": 100, "tail": 93}[where]
        assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition(stamped, 0), timeout=10) == (0, 100)
    finally:
        consumer.close()


@each_client
def test_tailing_sees_records_as_they_come(
    broker: Broker, admin: Admin, unique: Callable[[str], str], client: Client
) -> None:
    """The consumer waits at the end of the log in a long poll; a record wakes it well before the poll's own limit."""
    topic = admin.create_topic(unique("tail"))

    def produce() -> None:
        for i in range(5):
            time.sleep(0.1)
            Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"%d" % i)])

    with ThreadPoolExecutor(1) as pool:
        producing = pool.submit(produce)
        received = client.consume(broker.bootstrap, topic, 5)
        producing.result(30)
    assert [r.value for r in received] == [b"0", b"1", b"2", b"3", b"4"]


def test_a_long_poll_ends_when_a_record_comes(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("long-poll"))
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "not-used", "fetch.wait.max.ms": 20_000}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        assert consumer.poll(1) is None
        Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"v")])
        start = time.monotonic()
        assert consumer.poll(10) is not None
        assert time.monotonic() - start < 5
    finally:
        consumer.close()


def test_fetch_min_bytes_holds_the_answer_back(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    topic = admin.create_topic(unique("min-bytes"))
    Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"small")])
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "not-used",
            "fetch.min.bytes": 50_000,
            "fetch.wait.max.ms": 1500,
        }
    )
    try:
        start = time.monotonic()
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        assert consumer.poll(15) is not None
        assert time.monotonic() - start > 1.4
    finally:
        consumer.close()


def test_one_hundred_topics(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    """Metadata of, production to and consumption from a hundred topics over one connection each way."""
    stem = unique("hundred")
    names = [f"{stem}-{i}" for i in range(100)]
    for future in admin.client.create_topics([NewTopic(name, 1, 1) for name in names], request_timeout=30).values():
        future.result(30)
    assert set(names) <= set(admin.topics())
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20})
    for name in names:
        producer.produce(name, name.encode())
    assert producer.flush(30) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "not-used"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(name, 0, 0) for name in names])
        seen = {message.topic(): message.value() for message in consumer.consume(100, 30)}
    finally:
        consumer.close()
    assert seen == {name: name.encode() for name in names}

    async def metadata_of_aiokafka() -> set[str]:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as aio:
            return await aio.topics()

    assert set(names) <= asyncio.run(asyncio.wait_for(metadata_of_aiokafka(), 30))
    for future in admin.client.delete_topics(names, request_timeout=30).values():
        future.result(30)


def test_a_fetch_is_bounded_but_makes_progress(broker: Broker, admin: Admin, unique: Callable[[str], str]) -> None:
    """Batches larger than the partition limit are still returned, one at a time."""
    topic = admin.create_topic(unique("bounded"))
    for i in range(5):
        Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"%d" % i * 100_000)])
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "not-used",
            "max.partition.fetch.bytes": 1000,
            "fetch.message.max.bytes": 1000,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        assert [m.value()[:1] for m in consumer.consume(5, 20)] == [b"0", b"1", b"2", b"3", b"4"]
    finally:
        consumer.close()
