"""A bank whose books must balance: transfers are read from one topic and booked in two others, in transactions.

Each transfer takes a sum from an account and gives it to another: two entries, in different topics and partitions, and
the transfer's offset, all in one transaction. Tellers abort some of their transactions on purpose, and start anew
(leaving the old client to itself, a zombie) when theirs has failed. Every try is numbered, so that an entry of one that
was aborted is known when it is seen.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import threading
import time

import confluent_kafka

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.transactional_clients import ConfluentTransactions

ACCOUNTS = 8
BATCH = 4
PARTITIONS = 2
GROUP = "tellers"
CALL_TIMEOUT_S = 10
TRANSACTION_TIMEOUT_MS = 5_000
READ_TIMEOUT_S = 30
PATIENCE_S = 8


class Bank:
    """`transfers` are booked by as many tellers as that topic has partitions."""

    def __init__(self, bootstrap: str, *, tellers: int, transfers: int, seed: int) -> None:
        admin = Admin(bootstrap)
        self._bootstrap = bootstrap
        self._random = random.Random(seed)
        self._tries = itertools.count(1)
        self.aborted: set[int] = set()
        """Tries that the broker has confirmed to be aborted."""
        self.transfers = transfers
        self.source = admin.create_topic("transfers", tellers)
        self.ledgers = [admin.create_topic(name, PARTITIONS) for name in ("debits", "credits")]
        self._order(tellers, transfers)
        self._threads = [threading.Thread(target=self._work, args=(teller,), daemon=True) for teller in range(tellers)]
        self.booked = [0] * tellers
        self.failures: list[str] = []

    def _order(self, tellers: int, transfers: int) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self._bootstrap})
        for teller in range(tellers):
            for number in range(transfers):
                payer, payee = self._random.sample(range(ACCOUNTS), 2)
                order = {"id": f"{teller}-{number}", "from": payer, "to": payee, "sum": self._random.randint(1, 100)}
                producer.produce(self.source, json.dumps(order), partition=teller)
        assert producer.flush(CALL_TIMEOUT_S) == 0

    # -- tellers ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        assert not any(thread.is_alive() for thread in self._threads), f"{self.booked} booked; {self.failures[-5:]}"

    def _work(self, teller: int) -> None:
        """One session after the other. One that gets no further is left to itself: librdkafka may wait for a group
        coordinator for good when it was away, whatever time-out it was given.
        """
        while self.booked[teller] < self.transfers:
            session = threading.Thread(target=self._session_or_failure, args=(teller,), daemon=True)
            session.start()
            before = -1
            while session.is_alive() and self.booked[teller] != before:
                before = self.booked[teller]
                session.join(PATIENCE_S)

    def _session_or_failure(self, teller: int) -> None:
        try:
            self._session(teller)
        except confluent_kafka.KafkaException as error:
            self.failures.append(str(error))
            time.sleep(0.05)

    def _session(self, teller: int) -> None:
        """From one start of the client to its failure, or the end of the work."""
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": f"teller-{teller}",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        producer.init_transactions(CALL_TIMEOUT_S)
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        try:
            while self._position(consumer, teller) < self.transfers:
                self._book_some(producer, consumer, teller)
        finally:
            consumer.close()

    def _position(self, consumer: confluent_kafka.Consumer, teller: int) -> int:
        """Go to the first transfer that is not booked."""
        (found,) = consumer.committed([confluent_kafka.TopicPartition(self.source, teller)], CALL_TIMEOUT_S)
        position = max(0, found.offset)
        self.booked[teller] = max(self.booked[teller], position)
        consumer.assign([confluent_kafka.TopicPartition(self.source, teller, position)])
        return position

    def _book_some(self, producer: confluent_kafka.Producer, consumer: confluent_kafka.Consumer, teller: int) -> None:
        messages = [message for message in consumer.consume(BATCH, 0.3) if message.error() is None]
        if not messages:
            return
        attempt = next(self._tries)
        producer.begin_transaction()
        try:
            for message in messages:
                order = json.loads(message.value())
                for topic, account, sign in zip(self.ledgers, (order["from"], order["to"]), (-1, 1), strict=True):
                    entry = {"try": attempt, "id": order["id"], "account": account, "sum": sign * order["sum"]}
                    producer.produce(topic, json.dumps(entry), partition=account % PARTITIONS)
            position = confluent_kafka.TopicPartition(self.source, teller, messages[-1].offset() + 1)
            producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), CALL_TIMEOUT_S)
            if self._random.random() < 0.3:
                producer.abort_transaction(CALL_TIMEOUT_S)
                self.aborted.add(attempt)
            else:
                producer.commit_transaction(CALL_TIMEOUT_S)
        except confluent_kafka.KafkaException as error:
            if error.args[0].txn_requires_abort():
                with contextlib.suppress(confluent_kafka.KafkaException):
                    producer.abort_transaction(CALL_TIMEOUT_S)
            raise

    def outlive(self, broker: Broker, kills: int, rng: random.Random) -> None:
        """Work while the broker is killed again and again, and until all is booked."""
        self.start()
        for _ in range(kills):
            before = sum(self.booked)
            deadline = time.monotonic() + 3 * PATIENCE_S
            while sum(self.booked) == before and before < len(self.booked) * self.transfers:
                assert time.monotonic() < deadline, f"no progress after a restart: {self.failures[-5:]}"
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.3))
            broker.kill()
            broker.start()
        self.finish(90 + self.transfers)

    # -- the audit -------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Every transfer is booked once on either side, nothing that was aborted is seen, and the books balance."""
        sides = []
        for topic in self.ledgers:
            entries: list[dict[str, int | str]] = []
            for partition in range(PARTITIONS):
                entries += self._read(topic, partition)
            sides.append(entries)
        wanted = sorted(f"{teller}-{number}" for teller in range(len(self.booked)) for number in range(self.transfers))
        for entries in sides:
            assert sorted(str(entry["id"]) for entry in entries) == wanted
            assert not {entry["try"] for entry in entries} & self.aborted
        debits, credits_ = ({(entry["try"], entry["id"]) for entry in entries} for entries in sides)
        assert debits == credits_, "a transaction is torn"
        assert sum(int(entry["sum"]) for entries in sides for entry in entries) == 0

    def _read(self, topic: str, partition: int) -> list[dict[str, int | str]]:
        """All that is committed; waits until no transaction is open any more."""
        raw = confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": "audit"})
        _, end = raw.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), CALL_TIMEOUT_S)
        raw.close()
        deadline = time.monotonic() + READ_TIMEOUT_S
        while True:
            found, position = ConfluentTransactions().read_partition(self._bootstrap, topic, partition)
            if position >= end:
                return [json.loads(value) for _, value in found]
            assert time.monotonic() < deadline, f"{topic}-{partition} is stable up to {position} of {end}"
            time.sleep(0.2)
