"""The clients that can produce in transactions behind one small interface: what a scenario of transactions needs."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiokafka
import confluent_kafka
import kafka
from aiokafka.structs import TopicPartition as AiokafkaTopicPartition
from kafka.structs import OffsetAndMetadata as KafkaPythonOffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPythonTopicPartition

import tests.support.loads.kafka_python_sockets  # noqa: F401 - for its effect
from tests.support.processes.apache.jvm import program_command
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS

T = TypeVar("T")

TIMEOUT_S = 30
TRANSFORM_BATCH = 7
PROGRAM = Path(__file__).parents[1] / "jvm" / "TransactionalClient.java"

Values = list[tuple[int, str]]
"""Offsets and values, in the order they were read."""


class TransactionFailedError(Exception):
    """The client or the broker has refused to continue the transaction."""


class TransactionalProducer(Protocol):
    """A producer that has been given its id and epoch. What it writes goes to partition 0.

    Raises: TransactionFailedError, from `send` on, when it is fenced or its transaction is gone.
    """

    def begin(self) -> None: ...

    def send(self, topic: str, value: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class TransactionalClient(Protocol):
    """One client library."""

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 20_000) -> TransactionalProducer: ...

    def read(self, bootstrap: str, topic: str, isolation: str) -> Values:
        """The records of partition 0 that a reader of that isolation level sees."""
        ...

    def transform(self, bootstrap: str, source: str, sink: str, group: str, transactional_id: str, count: int) -> None:
        """Copy `count` values with a ' behind them; every other transaction is aborted once and repeated."""
        ...


# -- librdkafka ----------------------------------------------------------------------------------------------


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self.guarded(self._producer.init_transactions, TIMEOUT_S)

    @staticmethod
    def guarded(call: Callable[..., T], *arguments: Any) -> T:
        try:
            return call(*arguments)
        except confluent_kafka.KafkaException as error:
            raise TransactionFailedError(str(error)) from error

    def begin(self) -> None:
        self.guarded(self._producer.begin_transaction)

    def send(self, topic: str, value: str) -> None:
        self.guarded(lambda: self._producer.produce(topic, value.encode(), partition=0))
        self.guarded(self._producer.flush, TIMEOUT_S)

    def send_offsets(self, offsets: list[confluent_kafka.TopicPartition], group_metadata: object) -> None:
        self.guarded(self._producer.send_offsets_to_transaction, offsets, group_metadata, TIMEOUT_S)

    def commit(self) -> None:
        self.guarded(self._producer.commit_transaction, TIMEOUT_S)

    def abort(self) -> None:
        self.guarded(self._producer.abort_transaction, TIMEOUT_S)

    def close(self) -> None:
        self._producer.purge()


class ConfluentTransactions:
    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 20_000) -> ConfluentProducer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    @staticmethod
    def _consumer(bootstrap: str, group: str, isolation: str) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,  # the end of a partition is told by an empty answer
            }
        )

    def read(self, bootstrap: str, topic: str, isolation: str) -> Values:
        return self.read_partition(bootstrap, topic, 0, isolation)[0]

    def read_partition(
        self, bootstrap: str, topic: str, partition: int, isolation: str = "read_committed"
    ) -> tuple[Values, int]:
        """The visible records of a partition, and its end offset."""
        consumer = self._consumer(bootstrap, "not-used", isolation)
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        found: Values = []
        try:
            while True:
                (message,) = consumer.consume(1, TIMEOUT_S)
                error = message.error()
                if error is not None:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    return found, message.offset()
                found.append((message.offset(), message.value().decode()))
        finally:
            consumer.close()

    def read_stable(self, bootstrap: str, topic: str, partition: int = 0) -> Values:
        """All that is committed; waits until no transaction is open any more, and its markers are written."""
        # The end for a read_committed consumer is the last stable offset.
        raw = self._consumer(bootstrap, "not-used", "read_uncommitted")
        _, end = raw.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), TIMEOUT_S)
        raw.close()
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found, position = self.read_partition(bootstrap, topic, partition)
            if position >= end:
                return found
            assert time.monotonic() < deadline, f"{topic}-{partition} is stable up to {position} of {end}"
            time.sleep(0.2)

    def transform(self, bootstrap: str, source: str, sink: str, group: str, transactional_id: str, count: int) -> None:
        producer = self.producer(bootstrap, transactional_id)
        consumer = self._consumer(bootstrap, group, "read_committed")
        consumer.subscribe([source])
        partition = confluent_kafka.TopicPartition(source, 0)
        done = transactions = 0
        while done < count:
            messages = [m for m in consumer.consume(TRANSFORM_BATCH, 0.3) if m.error() is None]
            if not messages:
                continue
            producer.begin()
            for message in messages:
                producer.send(sink, message.value().decode() + "'")
            offset = confluent_kafka.TopicPartition(source, 0, messages[-1].offset() + 1)
            producer.send_offsets([offset], consumer.consumer_group_metadata())
            transactions += 1
            if transactions % 2:
                producer.abort()
                (committed,) = consumer.committed([partition], TIMEOUT_S)
                consumer.seek(confluent_kafka.TopicPartition(source, 0, max(0, committed.offset)))
            else:
                producer.commit()
                done += len(messages)
        consumer.close()
        producer.close()


# -- kafka-python --------------------------------------------------------------------------------------------


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        self._guarded(self._producer.init_transactions)

    @staticmethod
    def _guarded(call: Callable[..., T], *arguments: Any) -> T:
        try:
            return call(*arguments)
        except (kafka.errors.KafkaError, AssertionError) as error:
            raise TransactionFailedError(str(error)) from error

    def begin(self) -> None:
        self._guarded(self._producer.begin_transaction)

    def send(self, topic: str, value: str) -> None:
        self._guarded(lambda: self._producer.send(topic, value.encode(), partition=0).get(TIMEOUT_S))

    def send_offsets(self, offsets: dict[KafkaPythonTopicPartition, object], group_metadata: object) -> None:
        self._guarded(self._producer.send_offsets_to_transaction, offsets, group_metadata)

    def commit(self) -> None:
        self._guarded(self._producer.commit_transaction)

    def abort(self) -> None:
        self._guarded(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=1)


class KafkaPythonTransactions:
    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 20_000) -> KafkaPythonProducer:
        return KafkaPythonProducer(bootstrap, transactional_id, timeout_ms)

    @staticmethod
    def _consumer(bootstrap: str, group: str, isolation: str) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=TRANSFORM_BATCH,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )

    def read(self, bootstrap: str, topic: str, isolation: str) -> Values:
        consumer = self._consumer(bootstrap, "not-used", isolation)
        partition = KafkaPythonTopicPartition(topic, 0)
        found: Values = []
        try:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            end = consumer.end_offsets([partition])[partition]
            deadline = time.monotonic() + TIMEOUT_S
            while consumer.position(partition) < end:
                assert time.monotonic() < deadline, f"stuck at {consumer.position(partition)} of {end}"
                for records in consumer.poll(timeout_ms=200).values():
                    found += [(record.offset, record.value.decode()) for record in records]
            return found
        finally:
            consumer.close()

    def transform(self, bootstrap: str, source: str, sink: str, group: str, transactional_id: str, count: int) -> None:
        producer = self.producer(bootstrap, transactional_id)
        consumer = self._consumer(bootstrap, group, "read_committed")
        consumer.subscribe([source])
        partition = KafkaPythonTopicPartition(source, 0)
        done = transactions = 0
        while done < count:
            # As long as it takes: a poll that ends in a join may lose the join, see `kafka_python_member`.
            records = consumer.poll(timeout_ms=TIMEOUT_S * 1_000)[partition]
            producer.begin()
            for record in records:
                producer.send(sink, record.value.decode() + "'")
            next_offset = KafkaPythonOffsetAndMetadata(records[-1].offset + 1, "", -1)
            producer.send_offsets({partition: next_offset}, consumer.group_metadata())
            transactions += 1
            if transactions % 2:
                producer.abort()
                consumer.seek(partition, consumer.committed(partition) or 0)
            else:
                producer.commit()
                done += len(records)
        consumer.close()
        producer.close()


# -- aiokafka ------------------------------------------------------------------------------------------------


class _Loop:
    """An event loop in a thread of its own, so that producers live on between the calls of a test."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)


class AiokafkaProducer:
    def __init__(self, loop: _Loop, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = loop

        async def make() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self._producer = self._guarded(make())

    def _guarded(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run(work)
        except aiokafka.errors.KafkaError as error:
            raise TransactionFailedError(repr(error)) from error

    def begin(self) -> None:
        self._guarded(self._producer.begin_transaction())

    def send(self, topic: str, value: str) -> None:
        self._guarded(self._producer.send_and_wait(topic, value.encode(), partition=0))

    def send_offsets(self, offsets: dict[AiokafkaTopicPartition, int], group: str) -> None:
        self._guarded(self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._guarded(self._producer.commit_transaction())

    def abort(self) -> None:
        self._guarded(self._producer.abort_transaction())

    def close(self) -> None:
        self._guarded(self._producer.stop())


class AiokafkaTransactions:
    def __init__(self) -> None:
        self._loop = _Loop()

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 20_000) -> AiokafkaProducer:
        return AiokafkaProducer(self._loop, bootstrap, transactional_id, timeout_ms)

    @staticmethod
    def _consumer(bootstrap: str, group: str | None, isolation: str) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=TRANSFORM_BATCH,
        )

    def read(self, bootstrap: str, topic: str, isolation: str) -> Values:
        async def run() -> Values:
            consumer = self._consumer(bootstrap, None, isolation)
            partition = AiokafkaTopicPartition(topic, 0)
            found: Values = []
            async with consumer:
                consumer.assign([partition])
                await consumer.seek_to_beginning(partition)
                end = (await consumer.end_offsets([partition]))[partition]
                while await consumer.position(partition) < end:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        found += [(record.offset, record.value.decode()) for record in records]
            return found

        return self._loop.run(run())

    def transform(self, bootstrap: str, source: str, sink: str, group: str, transactional_id: str, count: int) -> None:
        producer = self.producer(bootstrap, transactional_id)
        partition = AiokafkaTopicPartition(source, 0)

        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = self._consumer(bootstrap, group, "read_committed")
            consumer.subscribe([source])
            await consumer.start()
            return consumer

        consumer = self._loop.run(start())
        done = transactions = 0
        while done < count:
            records = self._loop.run(consumer.getmany(timeout_ms=300)).get(partition, [])
            if not records:
                continue
            producer.begin()
            for record in records:
                producer.send(sink, record.value.decode() + "'")
            producer.send_offsets({partition: records[-1].offset + 1}, group)
            transactions += 1
            if transactions % 2:
                producer.abort()
                consumer.seek(partition, self._loop.run(consumer.committed(partition)) or 0)
            else:
                producer.commit()
                done += len(records)
        self._loop.run(consumer.stop())
        producer.close()


# -- Apache's Java client ------------------------------------------------------------------------------------


class JavaProducer:
    def __init__(self, java: JavaTransactions, handle: str) -> None:
        self._java = java
        self._handle = handle

    def begin(self) -> None:
        self._java.execute("begin", self._handle)

    def send(self, topic: str, value: str) -> None:
        self._java.execute("send", self._handle, topic, value)

    def commit(self) -> None:
        self._java.execute("commit", self._handle)

    def abort(self) -> None:
        self._java.execute("abort", self._handle)

    def close(self) -> None:
        self._java.execute("close", self._handle)


class JavaTransactions:
    """One JVM, for any number of producers and consumers."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._handles = 0
        self.commits_for = "member"
        """`group`: offsets are committed for the group alone, as brokers before 2.5 demand (KIP-447)."""

    def execute(self, *words: str) -> str:
        if self._process is None:
            command = program_command(PROGRAM)
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        verdict, _, rest = self._process.stdout.readline().rstrip("\n").partition("\t")
        if verdict != "OK":
            raise TransactionFailedError(rest)
        return rest

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def new_handle(self) -> str:
        """A name for a producer."""
        self._handles += 1
        return str(self._handles)

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 20_000) -> JavaProducer:
        handle = self.new_handle()
        self.execute("open", handle, bootstrap, transactional_id, str(timeout_ms))
        return JavaProducer(self, handle)

    def read(self, bootstrap: str, topic: str, isolation: str) -> Values:
        pairs = [word.partition(":") for word in self.execute("read", bootstrap, topic, isolation).split()]
        return [(int(offset), value) for offset, _, value in pairs]

    def transform(self, bootstrap: str, source: str, sink: str, group: str, transactional_id: str, count: int) -> None:
        self.execute("transform", bootstrap, source, sink, group, transactional_id, str(count), self.commits_for)
