"""A load of records that are numbered for each partition and whose acknowledgements are noted, and checks of it."""

from __future__ import annotations

import threading
import time

import confluent_kafka

from tests.support.waiting import eventually

PARTITIONS = 3
DRAIN_TIMEOUT_S = 30
SOCKET_TIMEOUT_MS = 4_000
"""A paused broker keeps its connections: its clients look for another one only after this time-out."""


class Load:
    """A producer in a thread of its own that numbers its records per partition and notes each acknowledgement."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        idempotent: bool,
        pause_s: float = 0.001,
        max_in_flight: int = 5,
        partitions: int = PARTITIONS,
    ) -> None:
        """`pause_s`: between one record for each partition and the next. `max_in_flight`: of an idempotent load;
        one where leaders move, since librdkafka may write twice what was under way (see `mixed_cluster.loads`).
        """
        self.topic = topic
        self._pause_s = pause_s
        now = time.monotonic()
        self._answered_at = dict.fromkeys(range(partitions), now)
        self.silence_s = dict.fromkeys(range(partitions), 0.0)
        """The longest time that a partition has acknowledged nothing; may be set back to 0."""
        self.acknowledged: dict[int, dict[int, int | None]] = {partition: {} for partition in range(partitions)}
        self.sent = [0] * partitions
        self.failed: list[tuple[int, int, str]] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "max.in.flight.requests.per.connection": max_in_flight if idempotent else 1,
                "retries": 1000 if idempotent else 0,
                "linger.ms": 1,
                "batch.size": 10_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "message.timeout.ms": 60_000,
                "socket.timeout.ms": SOCKET_TIMEOUT_MS,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for partition in range(len(self.sent)):
                number = self.sent[partition]
                self.sent[partition] += 1
                self._producer.produce(
                    self.topic,
                    b"%d" % number,
                    partition=partition,
                    on_delivery=lambda error, message, number=number: self._delivered(error, message, number),
                )
            self._pause()

    def _pause(self) -> None:
        """Note what is acknowledged meanwhile: `poll` returns when it has noted something, or after whole ms."""
        end = time.monotonic() + self._pause_s
        self._producer.poll(self._pause_s)
        while (left_s := end - time.monotonic()) >= 0.001:
            self._producer.poll(left_s)

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message, number: int
    ) -> None:
        if error is None:
            partition, now = message.partition(), time.monotonic()
            self.acknowledged[partition][number] = message.offset()
            silence_s, self._answered_at[partition] = now - self._answered_at[partition], now
            self.silence_s[partition] = max(self.silence_s[partition], silence_s)
        else:
            self.failed.append((message.partition(), number, error.str()))

    def begin_silence(self) -> None:
        """Forget how long partitions have been silent; what they are silent now counts."""
        self.silence_s = dict.fromkeys(self.silence_s, 0.0)

    def is_silent_since(self, moment: float) -> bool:
        """Whether a partition has acknowledged nothing since that time of `time.monotonic`."""
        return any(answered_at <= moment for answered_at in self._answered_at.values())

    def silence_so_far_s(self) -> dict[int, float]:
        """The longest silence of each partition, that of the moment included."""
        now = time.monotonic()
        return {p: max(self.silence_s[p], now - answered_at) for p, answered_at in self._answered_at.items()}

    @property
    def total(self) -> int:
        return sum(len(by_number) for by_number in self.acknowledged.values())

    def await_progress(self) -> None:
        """Wait until every partition has acknowledged something more."""
        before = {partition: len(numbers) for partition, numbers in self.acknowledged.items()}
        eventually(
            lambda: all(len(self.acknowledged[partition]) > count for partition, count in before.items()),
            timeout_s=DRAIN_TIMEOUT_S,
        )

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(10)
        assert not self._thread.is_alive()
        assert self._producer.flush(DRAIN_TIMEOUT_S) == 0


def read_all(bootstrap: str, topic: str, partition: int) -> list[int]:
    """The numbers in a partition, by offset."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end of a partition is told by an empty answer
            "log_level": 0,
        }
    )
    numbers: list[int] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.1):
                if message.error():
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                    return numbers
                assert message.offset() == len(numbers), "offsets have a hole"
                numbers.append(int(message.value()))
    finally:
        consumer.close()
    raise AssertionError("the end of the partition was not reached")


def check_acknowledged(load: Load, partition: int, numbers: list[int]) -> None:
    for number, offset in load.acknowledged[partition].items():
        if offset is None:  # a client may learn that a record is there and not where
            assert number in numbers, f"acknowledged record {number} is lost"
            continue
        assert offset < len(numbers), (
            f"acknowledged record {number} at {offset} is lost: the log ends at {len(numbers)}"
        )
        assert numbers[offset] == number, f"offset {offset} was answered for {number} and holds {numbers[offset]}"


def check_complete(load: Load, bootstrap: str) -> None:
    """Every record of an idempotent load is there, once and in order, also those without an acknowledgement."""
    assert load.failed == []
    for partition, sent in enumerate(load.sent):
        numbers = read_all(bootstrap, load.topic, partition)
        check_acknowledged(load, partition, numbers)
        assert numbers == list(range(sent)), f"{load.topic}-{partition}: a record is lost, repeated or out of order"
