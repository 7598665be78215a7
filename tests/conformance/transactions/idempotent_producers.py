"""Idempotent producers of two clients behind one small interface: send many records, then read the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import confluent_kafka

from tests.support.loads.transactional_clients import JavaTransactions

BATCH_RECORDS = 3
DELIVERY_TIMEOUT_S = 60


class IdempotentProducer(Protocol):
    """Writes to partition 0."""

    def send(self, topic: str, values: list[str]) -> None:
        """Hand them over, and do not wait for answers."""

    def offsets(self) -> Sequence[int | None]:
        """Wait for the answers to all that was handed over since the last call; where each value went.

        None: librdkafka takes an answer to a later batch for the answer to those before it, and has no offset of them.
        """
        ...

    def close(self) -> None: ...


class ConfluentIdempotence:
    """librdkafka."""

    def __init__(self, bootstrap: str, in_flight: int) -> None:
        self._answers: list[tuple[confluent_kafka.KafkaError | None, int | None]] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "max.in.flight": in_flight,
                "batch.num.messages": BATCH_RECORDS,
                "message.timeout.ms": DELIVERY_TIMEOUT_S * 1000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
        )

    def send(self, topic: str, values: list[str]) -> None:
        for value in values:
            self._producer.produce(topic, value, partition=0, on_delivery=self._answered)
            self._producer.poll(0)

    def _answered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        self._answers.append((error, message.offset()))

    def offsets(self) -> list[int | None]:
        assert self._producer.flush(DELIVERY_TIMEOUT_S) == 0
        answers, self._answers = self._answers, []
        assert not [error for error, _ in answers if error is not None], answers
        return [offset for _, offset in answers]

    def close(self) -> None:
        self._producer.purge()


class JavaIdempotence:
    """Apache's own."""

    def __init__(self, java: JavaTransactions, bootstrap: str, in_flight: int) -> None:
        self._execute = java.execute
        self._handle = java.new_handle()
        self._execute("open idempotent", self._handle, bootstrap, str(in_flight))

    def send(self, topic: str, values: list[str]) -> None:
        self._execute("hand over", self._handle, topic, *values)

    def offsets(self) -> list[int]:
        return [int(offset) for offset in self._execute("offsets", self._handle).split()]

    def close(self) -> None:
        self._execute("close", self._handle)
