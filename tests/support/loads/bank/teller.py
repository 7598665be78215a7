"""A teller of the bank (bank.py), a process of its own so that it can be killed: transfers in, entries out.

    python -m tests.support.loads.bank.teller '{"bootstrap": ..., "teller": 0, ...}'

It prints a line for each event: `booked N` (the number of transfers that are known to be booked), `aborted TRY` (the
broker has confirmed it). It ends when all is booked, when its client has failed, and when it makes no progress.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
from dataclasses import asdict, dataclass

import confluent_kafka

BATCH = 4
GROUP = "tellers"
CALL_TIMEOUT_S = 10
PATIENCE_S = 12
ABORTED = 0.3


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The options of a teller."""

    bootstrap: str
    teller: int
    """It books the partition of `source` of this number."""
    session: str
    """A number of its own: the names of tries begin with it."""
    source: str
    ledgers: list[str]
    """Topics of what is taken and of what is given."""
    partitions: int
    """As many as each ledger has; an account has its place in one of them."""
    transfers: int
    transaction_timeout_ms: int

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.support.loads.bank.teller", json.dumps(asdict(self))]


def say(*words: object) -> None:
    print(*words, flush=True)


class Teller:
    """Works from one start of the client to its failure, or to the end of the work."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._random = random.Random(contract.session)
        self._tries = 0
        common = {
            "bootstrap.servers": contract.bootstrap,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "metadata.recovery.strategy": "none",  # the other may forget the coordinator for good
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(
            common
            | {
                "transactional.id": f"teller-{contract.teller}",
                "transaction.timeout.ms": contract.transaction_timeout_ms,
            }
        )
        self._consumer = confluent_kafka.Consumer(
            common
            | {
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )

    def work(self) -> None:
        self._producer.init_transactions(CALL_TIMEOUT_S)
        while self._go_to_work() < self._contract.transfers:
            self._book_some()

    def _go_to_work(self) -> int:
        """To the first transfer that is not booked."""
        contract = self._contract
        partition = confluent_kafka.TopicPartition(contract.source, contract.teller)
        (found,) = self._consumer.committed([partition], CALL_TIMEOUT_S)
        position = max(0, found.offset)
        say("booked", position)
        self._consumer.assign([confluent_kafka.TopicPartition(contract.source, contract.teller, position)])
        return position

    def _book_some(self) -> None:
        messages = [message for message in self._consumer.consume(BATCH, 0.3) if message.error() is None]
        if not messages:
            return
        signal.alarm(PATIENCE_S)
        self._tries += 1
        attempt = f"{self._contract.session}-{self._tries}"
        producer = self._producer
        producer.begin_transaction()
        try:
            for message in messages:
                self._enter(attempt, json.loads(message.value()))
            last = messages[-1]
            position = confluent_kafka.TopicPartition(last.topic(), last.partition(), last.offset() + 1)
            group = self._consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction([position], group, CALL_TIMEOUT_S)
            if self._random.random() < ABORTED:
                # What waits to be sent again when a transaction is aborted is dropped by librdkafka, and its sequences
                # are given to others in the same epoch: they are lost as duplicates if it had arrived.
                producer.flush(CALL_TIMEOUT_S)
                producer.abort_transaction(CALL_TIMEOUT_S)
                say("aborted", attempt)
            else:
                producer.commit_transaction(CALL_TIMEOUT_S)
        except confluent_kafka.KafkaException as error:
            if error.args[0].txn_requires_abort():
                with contextlib.suppress(confluent_kafka.KafkaException):
                    producer.abort_transaction(CALL_TIMEOUT_S)
            raise

    def _enter(self, attempt: str, order: dict[str, int]) -> None:
        """One entry on either side."""
        contract = self._contract
        for topic, account, sign in zip(contract.ledgers, (order["from"], order["to"]), (-1, 1), strict=True):
            entry = {"try": attempt, "id": order["id"], "account": account, "sum": sign * order["sum"]}
            self._producer.produce(topic, json.dumps(entry), partition=account % contract.partitions)


def main() -> None:
    """Ends by os._exit: a client whose calls have failed may wait long for an orderly end."""
    signal.alarm(PATIENCE_S)
    teller = Teller(Contract(**json.loads(sys.argv[1])))
    try:
        teller.work()
    except confluent_kafka.KafkaException as error:
        say("failed:", error)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
