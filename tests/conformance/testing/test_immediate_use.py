"""A topic is usable when CreateTopics has answered: no client gets an error that it would have to retry.

Each round creates a topic, produces to it and reads it back at once, with the clients' retries left as they are. The
recorder of the kit has all answers of the broker: none may have an error code. FindCoordinator is the exception: it
creates the internal topic, and Kafka answers it with COORDINATOR_NOT_AVAILABLE until that has a leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic

from odradek.testing import Broker
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS

ROUNDS = {"confluent-kafka": 100, "aiokafka": 80, "kafka-python": 20}
SOAK_ROUNDS = {"confluent-kafka": 5_000, "aiokafka": 4_000, "kafka-python": 1_000}
TOPICS_OF_A_BROKER = 500
"""Then the broker is reset, so that the directories in memory stay few."""


def with_confluent_kafka(address: str, topics: Iterator[str]) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 0})
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,
            "log_level": 0,
        }
    )
    for topic in topics:
        for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            future.result(10)
        producer.produce(topic, topic.encode())
        assert producer.flush(10) == 0
        consumer.list_topics(topic)  # else librdkafka looks for the leader of a new topic once a second
        consumer.assign([TopicPartition(topic, 0, 0)])
        record = consumer.poll(10)
        assert record is not None
        assert record.error() is None
        assert record.value() == topic.encode()
    consumer.close()


def with_aiokafka(address: str, topics: Iterator[str]) -> None:
    async def rounds() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        producer = AIOKafkaProducer(bootstrap_servers=address)
        consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
        await admin.start()
        await producer.start()
        await consumer.start()
        for topic in topics:
            await admin.create_topics([AioNewTopic(topic, 1, 1)])
            await producer.send_and_wait(topic, topic.encode())
            consumer.assign([_aio_partition(topic)])
            record = await asyncio.wait_for(consumer.getone(), 10)
            assert record.value == topic.encode()
        await consumer.stop()
        await producer.stop()
        await admin.close()

    asyncio.run(rounds())


def _aio_partition(topic: str) -> object:
    from aiokafka.structs import TopicPartition as AioTopicPartition

    return AioTopicPartition(topic, 0)


def with_kafka_python(address: str, topics: Iterator[str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=address)
    producer = kafka.KafkaProducer(bootstrap_servers=address)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=10_000,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )
    for topic in topics:
        admin.create_topics([PythonNewTopic(topic, 1, 1)])
        producer.send(topic, topic.encode()).get(10)
        consumer.assign([kafka.TopicPartition(topic, 0)])
        assert next(consumer).value == topic.encode()
    consumer.close()
    producer.close()
    admin.close()


CLIENTS: dict[str, Callable[[str, Iterator[str]], None]] = {
    "confluent-kafka": with_confluent_kafka,
    "aiokafka": with_aiokafka,
    "kafka-python": with_kafka_python,
}


def rounds(client: str, count: int) -> None:
    with Broker() as broker:
        for first in range(0, count, TOPICS_OF_A_BROKER):
            numbers = range(first, min(first + TOPICS_OF_A_BROKER, count))
            CLIENTS[client](broker.bootstrap_servers, (f"topic-{number}" for number in numbers))
            failed = [request for request in broker.requests() if request.errors and request.api != "FindCoordinator"]
            assert not failed, failed[:5]
            broker.reset()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_new_topic_is_usable_at_once(client: str) -> None:
    rounds(client, ROUNDS[client])


@pytest.mark.soak
@pytest.mark.parametrize("client", CLIENTS)
def test_ten_thousand_new_topics_are_usable_at_once(client: str) -> None:
    rounds(client, SOAK_ROUNDS[client])
