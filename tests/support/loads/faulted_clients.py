"""Four clients that do one small thing each while a broker fails on command, with short back-offs.

Their time-outs are long, as they are by default: a client that gives up a request sends it again, and on a busy machine
a request takes seconds. Only a fault for which a client has to wait until its time-out is worth a short one.

Each piece of work answers in one line: `offset N`, `value V`, `committed`, `created`, or the name of the client's
error.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol

import aiokafka
import aiokafka.admin
import aiokafka.errors
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin
from aiokafka.structs import TopicPartition as AiokafkaTopicPartition
from kafka.structs import TopicPartition as KafkaPythonTopicPartition

import tests.support.loads.kafka_python_sockets  # noqa: F401 - for its effect
from tests.support.processes.apache.jvm import program_command
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS, commit_after_rebalance

PROGRAM = Path(__file__).parents[1] / "jvm" / "FaultedClient.java"
PATIENT_MS = 30_000
LIMIT_S = 60
"""For one piece of work: a client that needs longer has failed."""
CLIENT_ID = "c"


class FaultedClient(Protocol):
    """One client library; the client id is always `c`.

    `work` is produce, produce_two (one after the other), fetch, commit, transact or create.
    """

    def run(self, work: str, bootstrap: str, topic: str, request_timeout_ms: int = PATIENT_MS) -> str: ...


class Librdkafka:
    """confluent-kafka. Its errors are named by librdkafka's codes."""

    def run(self, work: str, bootstrap: str, topic: str, request_timeout_ms: int = PATIENT_MS) -> str:
        self._request_timeout_ms = request_timeout_ms
        try:
            done: str = getattr(self, f"_{work}")(bootstrap, topic)
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        return done

    def _common(self, bootstrap: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": bootstrap,
            "client.id": CLIENT_ID,
            "socket.timeout.ms": self._request_timeout_ms,
            # librdkafka connects anew when it has found its coordinator again. A commit that is retried before it is
            # connected makes it look for the coordinator anew, and so on: with 20 ms until its session is over.
            "retry.backoff.ms": 100,
            "retry.backoff.max.ms": 200,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 50,
            "topic.metadata.refresh.fast.interval.ms": 20,
            "log_level": 0,
        }

    def _producer(self, bootstrap: str, **settings: Any) -> confluent_kafka.Producer:
        timeouts = {
            "request.timeout.ms": self._request_timeout_ms,
            "message.timeout.ms": LIMIT_S * 1_000,
            "linger.ms": 0,
        }
        return confluent_kafka.Producer(self._common(bootstrap) | timeouts | settings)

    def _consumer(self, bootstrap: str) -> confluent_kafka.Consumer:
        settings = {
            "group.id": "group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 20,
            "check.crcs": True,
        }
        return confluent_kafka.Consumer(self._common(bootstrap) | settings)

    def _produce(self, bootstrap: str, topic: str, count: int = 1) -> str:
        producer = self._producer(bootstrap)
        reports: list[str] = []

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            reports.append(f"offset {message.offset()}" if error is None else str(error.name()))

        for _ in range(count):
            producer.produce(topic, b"value", partition=0, on_delivery=delivered)
            producer.flush(LIMIT_S + 2)
        return reports[-1] if reports else "nothing reported"

    def _produce_two(self, bootstrap: str, topic: str) -> str:
        return self._produce(bootstrap, topic, 2)

    def _fetch(self, bootstrap: str, topic: str) -> str:
        consumer = self._consumer(bootstrap)
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
            return f"value {self._read(consumer)}"
        finally:
            consumer.close()

    def _commit(self, bootstrap: str, topic: str) -> str:
        consumer = self._consumer(bootstrap)
        try:
            consumer.subscribe([topic])
            self._read(consumer)
            consumer.commit(asynchronous=False)
            return "committed"
        finally:
            consumer.close()

    def _read(self, consumer: confluent_kafka.Consumer) -> str:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            message = consumer.poll(0.1)
            if message is not None:
                if message.error() is not None:
                    raise confluent_kafka.KafkaException(message.error())
                return (message.value() or b"").decode()
        return "none"

    def _transact(self, bootstrap: str, topic: str) -> str:
        producer = self._producer(
            bootstrap, **{"transactional.id": "transaction", "transaction.timeout.ms": LIMIT_S * 1_000}
        )
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce(topic, b"value", partition=0)
        producer.commit_transaction(LIMIT_S)
        return "committed"

    def _create(self, bootstrap: str, topic: str) -> str:
        admin = confluent_kafka.admin.AdminClient(self._common(bootstrap))
        admin.create_topics([confluent_kafka.admin.NewTopic(topic, 1, 1)], request_timeout=LIMIT_S)[topic].result()
        return "created"


class Aiokafka:
    """aiokafka."""

    def run(self, work: str, bootstrap: str, topic: str, request_timeout_ms: int = PATIENT_MS) -> str:
        self._request_timeout_ms = request_timeout_ms
        return asyncio.run(self._limited(getattr(self, f"_{work}")(bootstrap, topic)))

    async def _limited(self, work: Awaitable[str]) -> str:
        try:
            return await asyncio.wait_for(work, LIMIT_S)
        except Exception as error:  # noqa: BLE001 - its name is the answer
            return type(error).__name__

    def _producer(self, bootstrap: str, **settings: Any) -> aiokafka.AIOKafkaProducer:
        return aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=self._request_timeout_ms,
            retry_backoff_ms=20,
            **({"acks": "all"} | settings),
        )

    def _consumer(self, bootstrap: str, **settings: Any) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=self._request_timeout_ms,
            retry_backoff_ms=20,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            **settings,
        )

    async def _produce(self, bootstrap: str, topic: str) -> str:
        async with self._producer(bootstrap) as producer:
            return f"offset {(await producer.send_and_wait(topic, b'value', partition=0)).offset}"

    async def _produce_two(self, bootstrap: str, topic: str) -> str:
        async with self._producer(bootstrap) as producer:
            await producer.send_and_wait(topic, b"value", partition=0)
            return f"offset {(await producer.send_and_wait(topic, b'value', partition=0)).offset}"

    async def _fetch(self, bootstrap: str, topic: str) -> str:
        async with self._consumer(bootstrap) as consumer:
            partition = AiokafkaTopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            return f"value {(await consumer.getone()).value.decode()}"

    async def _commit(self, bootstrap: str, topic: str) -> str:
        async with self._consumer(bootstrap, group_id="group") as consumer:
            consumer.subscribe([topic])
            await consumer.getone()
            await consumer.commit()
            return "committed"

    async def _transact(self, bootstrap: str, topic: str) -> str:
        async with self._producer(bootstrap, transactional_id="transaction") as producer:
            await producer.begin_transaction()
            await producer.send(topic, b"value", partition=0)
            await producer.commit_transaction()
            return "committed"

    async def _create(self, bootstrap: str, topic: str) -> str:
        admin = aiokafka.admin.AIOKafkaAdminClient(
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=self._request_timeout_ms,
            retry_backoff_ms=20,
        )
        await admin.start()
        try:
            answer = await admin.create_topics([aiokafka.admin.NewTopic(topic, 1, 1)])
        finally:
            await admin.close()
        [(_, code, *_)] = answer.topic_errors
        return type(aiokafka.errors.for_code(code)()).__name__ if code else "created"


class KafkaPython:
    """kafka-python."""

    def run(self, work: str, bootstrap: str, topic: str, request_timeout_ms: int = PATIENT_MS) -> str:
        self._request_timeout_ms = request_timeout_ms
        try:
            done: str = getattr(self, f"_{work}")(bootstrap, topic)
        except Exception as error:  # noqa: BLE001 - its name is the answer
            return type(error).__name__
        return done

    def _common(self, bootstrap: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": bootstrap,
            "client_id": CLIENT_ID,
            "request_timeout_ms": self._request_timeout_ms,
            "retry_backoff_ms": 20,
            "reconnect_backoff_ms": 20,
            "reconnect_backoff_max_ms": 50,
        }

    def _producer(self, bootstrap: str, **settings: Any) -> kafka.KafkaProducer:
        timeouts = {"delivery_timeout_ms": LIMIT_S * 1_000, "max_block_ms": LIMIT_S * 1_000}
        return kafka.KafkaProducer(**self._common(bootstrap) | timeouts | settings)

    def _consumer(self, bootstrap: str, **settings: Any) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            **self._common(bootstrap),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            **settings,
        )

    def _produce(self, bootstrap: str, topic: str, count: int = 1) -> str:
        producer = self._producer(bootstrap, enable_idempotence=False, acks="all")
        try:
            sent = [producer.send(topic, b"value", partition=0).get(LIMIT_S + 2) for _ in range(count)]
            return f"offset {sent[-1].offset}"
        finally:
            producer.close(2)

    def _produce_two(self, bootstrap: str, topic: str) -> str:
        return self._produce(bootstrap, topic, 2)

    def _fetch(self, bootstrap: str, topic: str) -> str:
        consumer = self._consumer(bootstrap)
        try:
            partition = KafkaPythonTopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            return f"value {self._read(consumer)}"
        finally:
            consumer.close()

    def _commit(self, bootstrap: str, topic: str) -> str:
        consumer = self._consumer(bootstrap, group_id="group")
        try:
            consumer.partitions_for_topic(topic)  # else it joins first without partitions, and may then get stuck
            consumer.subscribe([topic])
            self._read(consumer)
            commit_after_rebalance(consumer, None, LIMIT_S)
            return "committed"
        finally:
            consumer.close()

    def _read(self, consumer: kafka.KafkaConsumer) -> str:
        # One poll: a poll that ends in a join may lose the join, see `kafka_python_member`.
        for records in consumer.poll(LIMIT_S * 1_000).values():
            for record in records:
                return str(record.value.decode())
        return "none"

    def _transact(self, bootstrap: str, topic: str) -> str:
        # The commit sends the record: if it were refused before the commit begins, another error would come of it.
        late = {"linger_ms": LIMIT_S * 1_000, "delivery_timeout_ms": 2 * LIMIT_S * 1_000}
        producer = self._producer(bootstrap, transactional_id="transaction", **late)
        try:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"value", partition=0)
            producer.commit_transaction()
            return "committed"
        finally:
            producer.close(2)

    def _create(self, bootstrap: str, topic: str) -> str:
        admin = kafka.KafkaAdminClient(**self._common(bootstrap))
        try:
            admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])
            return "created"
        finally:
            admin.close()


class Java:
    """Apache Kafka's own client, in one JVM for all pieces of work."""

    def __init__(self) -> None:
        command = program_command(PROGRAM)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def run(self, work: str, bootstrap: str, topic: str, request_timeout_ms: int = PATIENT_MS) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{work}\t{bootstrap}\t{topic}\t{request_timeout_ms}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
