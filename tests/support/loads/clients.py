"""The four clients of the conformance matrix behind one small interface: produce to a partition, read from an offset.

Only what the matrix needs is unified. A test that is about one client's own behaviour uses that client directly.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.structs import TopicPartition as AiokafkaTopicPartition
from kafka.structs import TopicPartition as KafkaPythonTopicPartition

import tests.support.loads.kafka_python_sockets  # noqa: F401 - for its effect
from tests.support.processes.apache.tools import Tools
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS

CLIENT_TIMEOUT_S = 30
CREATE_TIME = 0
LOG_APPEND_TIME = 1

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A record to send; a `None` timestamp leaves it to the client's clock."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A record as a consumer saw it; `timestamp_type` is Kafka's number, 0 create time and 1 log append time."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        return self.key, self.value, self.headers


class Client(Protocol):
    """One client library; `bootstrap` is passed each time, so that an instance has no state."""

    name: str
    codecs: tuple[str, ...]

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send to partition 0 and return the answered offsets (empty where the client or acks=0 gives none)."""

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Received]:
        """Read `count` records of partition 0, the first one at `offset`; fail when they do not come."""


class Aiokafka:
    """aiokafka 0.14: asyncio, deliberately old API versions."""

    name = "aiokafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        async def run() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=5,
            )
            async with producer:
                sent = [
                    await producer.send(
                        topic, m.value, m.key, partition=0, timestamp_ms=m.timestamp, headers=list(m.headers)
                    )
                    for m in messages
                ]
                answers = await asyncio.gather(*sent)
            return [] if acks == "0" else [answer.offset for answer in answers]

        return asyncio.run(asyncio.wait_for(run(), CLIENT_TIMEOUT_S))

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Received]:
        async def run() -> list[Received]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none")
            async with consumer:
                partition = AiokafkaTopicPartition(topic, 0)
                consumer.assign([partition])
                consumer.seek(partition, offset)
                records = [await consumer.getone() for _ in range(count)]
            return [
                Received(
                    offset=record.offset,
                    timestamp=record.timestamp,
                    timestamp_type=record.timestamp_type,
                    key=record.key,
                    value=record.value,
                    headers=tuple(record.headers),
                )
                for record in records
            ]

        return asyncio.run(asyncio.wait_for(run(), CLIENT_TIMEOUT_S))


class Confluent:
    """confluent-kafka 2.16, that is librdkafka."""

    name = "confluent"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        offsets: list[int] = []
        errors: list[str] = []

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None:
                errors.append(str(error))
            else:
                offsets.append(message.offset())

        for m in messages:
            stamp = {} if m.timestamp is None else {"timestamp": m.timestamp}
            producer.produce(
                topic, m.value, m.key, partition=0, headers=list(m.headers), on_delivery=delivered, **stamp
            )
        undelivered = producer.flush(CLIENT_TIMEOUT_S)
        assert not errors, errors
        assert undelivered == 0, f"{undelivered} messages undelivered"
        return [] if acks == "0" else offsets

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Received]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "not-used",
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
            }
        )
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
            records = consumer.consume(count, CLIENT_TIMEOUT_S)
        finally:
            consumer.close()
        assert [r.error() for r in records] == [None] * count, [(r.error(), r.offset()) for r in records]
        return [
            Received(
                offset=record.offset(),
                timestamp=record.timestamp()[1],
                timestamp_type=record.timestamp()[0] - confluent_kafka.TIMESTAMP_CREATE_TIME,
                key=record.key(),
                value=record.value(),
                headers=tuple(record.headers() or ()),
            )
            for record in records
        ]


class KafkaPython:
    """kafka-python 3: the newest API versions of the three."""

    name = "kafka-python"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=5,
        )
        try:
            sent = [
                producer.send(topic, m.value, m.key, list(m.headers), partition=0, timestamp_ms=m.timestamp)
                for m in messages
            ]
            producer.flush(CLIENT_TIMEOUT_S)
            answers = [future.get(CLIENT_TIMEOUT_S) for future in sent]
        finally:
            producer.close()
        return [] if acks == "0" else [answer.offset for answer in answers]

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Received]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="none",
            enable_auto_commit=False,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        records: list[kafka.consumer.fetcher.ConsumerRecord] = []
        try:
            partition = KafkaPythonTopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            deadline = time.monotonic() + CLIENT_TIMEOUT_S
            while len(records) < count:
                assert time.monotonic() < deadline, f"only {len(records)} of {count} records came"
                for polled in consumer.poll(timeout_ms=200, max_records=count - len(records)).values():
                    records.extend(polled)
        finally:
            consumer.close()
        return [
            Received(
                offset=record.offset,
                timestamp=record.timestamp,
                timestamp_type=record.timestamp_type,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            )
            for record in records
        ]


class Console:
    """Apache's console producer and consumer: the Java client, through text (so contents are printable)."""

    name = "console"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    NULL = "NULL"
    LINE = re.compile(
        rb"(?P<type>CreateTime|LogAppendTime|NoTimestampType):(?P<timestamp>-?\d+)\tOffset:(?P<offset>\d+)"
        rb"\t(?P<headers>[^\t]*)\t(?P<key>[^\t]*)\t(?P<value>[^\n]*)\n"
    )

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec]
        arguments += ["--request-required-acks", acks, "--property", "parse.key=true"]
        arguments += ["--property", "parse.headers=true", "--property", f"null.marker={self.NULL}"]
        arguments += ["--producer-property", f"enable.idempotence={str(idempotent).lower()}"]
        lines = [b"\t".join((self._headers(m.headers), self._text(m.key), self._text(m.value))) for m in messages]
        self._tools.run("console-producer", *arguments, stdin=b"\n".join(lines) + b"\n")
        return []

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Received]:
        arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", str(offset)]
        arguments += ["--max-messages", str(count), "--timeout-ms", str(CLIENT_TIMEOUT_S * 1000)]
        for name in ("timestamp", "offset", "headers", "key", "value"):
            arguments += ["--property", f"print.{name}=true"]
        arguments += ["--property", f"null.literal={self.NULL}"]
        output = self._tools.run("console-consumer", *arguments).stdout.encode()
        found = list(self.LINE.finditer(output))
        assert len(found) == count, output
        types = {b"CreateTime": CREATE_TIME, b"LogAppendTime": LOG_APPEND_TIME, b"NoTimestampType": -1}
        return [
            Received(
                offset=int(line["offset"]),
                timestamp=int(line["timestamp"]),
                timestamp_type=types[line["type"]],
                key=self._bytes(line["key"]),
                value=self._bytes(line["value"]),
                headers=self._parse_headers(line["headers"]),
            )
            for line in found
        ]

    def _text(self, content: bytes | None) -> bytes:
        return self.NULL.encode() if content is None else content

    def _bytes(self, text: bytes) -> bytes | None:
        return None if text == self.NULL.encode() else text

    def _headers(self, headers: Headers) -> bytes:
        if not headers:
            return self.NULL.encode()
        return b",".join(name.encode() + b":" + self._text(value) for name, value in headers)

    def _parse_headers(self, text: bytes) -> Headers:
        if text == b"NO_HEADERS":
            return ()
        pairs = (item.partition(b":") for item in text.split(b","))
        return tuple((name.decode(), self._bytes(value)) for name, _, value in pairs)


def python_clients() -> list[Client]:
    return [Aiokafka(), Confluent(), KafkaPython()]
