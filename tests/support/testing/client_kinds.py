"""Three client libraries behind one small interface, for tests that look into the broker of the test kit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

TIME_LIMIT_S = 30


class TransactionClient(Protocol):
    """A producer with a transactional id."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes) -> None:
        """Send and wait for the acknowledgement."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class GroupClient(Protocol):
    """A consumer of a group, which polls in a thread or on a loop of its own until it is closed."""

    def commit(self, topic: str, partition: int, offset: int) -> None: ...

    def close(self) -> None:
        """Leave the group."""


class ClientKind(Protocol):
    """One client library."""

    name: str
    codecs: tuple[str, ...]

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], codec: str, client_id: str) -> None: ...

    def transactions(self, bootstrap: str, transactional_id: str) -> TransactionClient: ...

    def consumer(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> GroupClient: ...


class Confluent:
    """confluent-kafka, on librdkafka."""

    name = "confluent-kafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], codec: str, client_id: str) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "client.id": client_id, "linger.ms": 50}
        )
        for value in values:
            producer.produce(topic, value, key=b"k", headers=[("h", b"1")])
        assert producer.flush(TIME_LIMIT_S) == 0

    def transactions(self, bootstrap: str, transactional_id: str) -> TransactionClient:
        return _ConfluentTransactions(bootstrap, transactional_id)

    def consumer(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> GroupClient:
        return _ConfluentConsumer(bootstrap, group_id, topic, client_id)


class _ConfluentTransactions:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
        self._producer.init_transactions(TIME_LIMIT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self._producer.produce(topic, value)
        assert self._producer.flush(TIME_LIMIT_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(TIME_LIMIT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(TIME_LIMIT_S)

    def close(self) -> None:
        """The producer ends with the object."""


class _Polled:
    """A consumer with blocking calls, in a thread that polls it."""

    def __init__(self, group_id: str) -> None:
        self._commits: list[tuple[str, int, int]] = []
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"consumer of {group_id}", daemon=True)
        self._thread.start()

    def commit(self, topic: str, partition: int, offset: int) -> None:
        self._commits.append((topic, partition, offset))

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join(TIME_LIMIT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._is_closing.is_set():
                self.poll()
                while self._commits:
                    self.commit_now(*self._commits.pop(0))
        finally:
            self.leave()

    def poll(self) -> None:
        raise NotImplementedError

    def commit_now(self, topic: str, partition: int, offset: int) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError


class _ConfluentConsumer(_Polled):
    def __init__(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "client.id": client_id,
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 100,
            }
        )
        self._consumer.subscribe([topic])
        super().__init__(group_id)

    def poll(self) -> None:
        self._consumer.poll(0.05)

    def commit_now(self, topic: str, partition: int, offset: int) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.commit(offsets=[TopicPartition(topic, partition, offset, "by test")], asynchronous=False)

    def leave(self) -> None:
        self._consumer.close()


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], codec: str, client_id: str) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=client_id,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        for value in values:
            producer.send(topic, value, key=b"k", headers=[("h", b"1")])
        producer.flush(TIME_LIMIT_S)
        producer.close()

    def transactions(self, bootstrap: str, transactional_id: str) -> TransactionClient:
        return _KafkaPythonTransactions(bootstrap, transactional_id)

    def consumer(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> GroupClient:
        return _KafkaPythonConsumer(bootstrap, group_id, topic, client_id)


class _KafkaPythonTransactions:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes) -> None:
        self._producer.send(topic, value).get(TIME_LIMIT_S)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=1)


class _KafkaPythonConsumer(_Polled):
    def __init__(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> None:
        from kafka import KafkaConsumer

        from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS

        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group_id,
            client_id=client_id,
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        # Else it may join before it knows the topic, join again for that reason, and get stuck when a poll ends in
        # this join: see `kafka_python_member`.
        assert self._consumer.partitions_for_topic(topic)
        super().__init__(group_id)

    def poll(self) -> None:
        self._consumer.poll(timeout_ms=50)

    def commit_now(self, topic: str, partition: int, offset: int) -> None:
        from kafka import OffsetAndMetadata, TopicPartition

        from tests.support.testing.kafka_python import commit_after_rebalance

        offsets = {TopicPartition(topic, partition): OffsetAndMetadata(offset, "by test", -1)}
        commit_after_rebalance(self._consumer, offsets, TIME_LIMIT_S)

    def leave(self) -> None:
        self._consumer.close()


class AioKafka:
    """aiokafka, each client on an event loop in a thread of its own."""

    name = "aiokafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], codec: str, client_id: str) -> None:
        from aiokafka import AIOKafkaProducer

        async def send_all() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                client_id=client_id,
                compression_type=None if codec == "none" else codec,
                linger_ms=50,
            )
            await producer.start()
            try:
                sent = [await producer.send(topic, value, key=b"k", headers=[("h", b"1")]) for value in values]
                await asyncio.gather(*sent)
            finally:
                await producer.stop()

        asyncio.run(asyncio.wait_for(send_all(), TIME_LIMIT_S))

    def transactions(self, bootstrap: str, transactional_id: str) -> TransactionClient:
        return _AioTransactions(bootstrap, transactional_id)

    def consumer(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> GroupClient:
        return _AioConsumer(bootstrap, group_id, topic, client_id)


class _OwnLoop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIME_LIMIT_S)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIME_LIMIT_S)
        self._loop.close()


class _AioTransactions(_OwnLoop):
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        super().__init__()
        self.run(self._start(bootstrap, transactional_id))

    async def _start(self, bootstrap: str, transactional_id: str) -> None:
        from aiokafka import AIOKafkaProducer

        self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
        await self._producer.start()

    def begin(self) -> None:
        self.run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self.run(self._producer.send_and_wait(topic, value))

    def commit(self) -> None:
        self.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self.run(self._producer.abort_transaction())

    def close(self) -> None:
        self.run(self._producer.stop())
        self.end()


class _AioConsumer(_OwnLoop):
    def __init__(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> None:
        super().__init__()
        self.run(self._start(bootstrap, group_id, topic, client_id))

    async def _start(self, bootstrap: str, group_id: str, topic: str, client_id: str) -> None:
        from aiokafka import AIOKafkaConsumer

        self._consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group_id,
            client_id=client_id,
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        )
        await self._consumer.start()

    def commit(self, topic: str, partition: int, offset: int) -> None:
        from aiokafka import TopicPartition

        self.run(self._consumer.commit({TopicPartition(topic, partition): (offset, "by test")}))

    def close(self) -> None:
        if not self._loop.is_closed():
            self.run(self._consumer.stop())
            self.end()


KINDS: tuple[ClientKind, ...] = (Confluent(), KafkaPython(), AioKafka())
