"""A bank whose accounts must balance: transfers are read from one topic and booked in two others, in transactions.

Each transfer takes a sum from an account and gives it to another: two entries, in different topics and partitions, and
the transfer's offset, all in one transaction. Tellers (teller.py) are processes that abort some of their transactions
on purpose and are started anew when they have failed or were killed. Every try has a number, so that an entry of an
aborted try is recognised. An auditor reads all the time: the entries that it has read must be there at the end.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections import Counter
from typing import Protocol

import confluent_kafka

from tests.support.admin import Admin
from tests.support.loads.bank.teller import PATIENCE_S, Contract
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.process import ProcessError

ACCOUNTS = 8
PARTITIONS = 2
TRANSACTION_TIMEOUT_MS = 5_000
READ_TIMEOUT_S = 30

Place = tuple[str, int]
"""A partition of a ledger."""


class Address(Protocol):
    """A broker, or a proxy in front of one."""

    @property
    def bootstrap(self) -> str: ...


class Mortal(Protocol):
    """A process that can be killed and started again."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


class Bank:
    """`transfers` are booked by each of the tellers."""

    def __init__(self, address: Address, *, tellers: int, transfers: int, seed: int, replicas: int = 1) -> None:
        self._bootstrap = address.bootstrap
        admin = Admin(self._bootstrap)
        self._seed = seed
        self._random = random.Random(seed)
        self.aborted: set[str] = set()
        """Tries that the broker has confirmed to be aborted."""
        self.failures: list[str] = []
        """The last lines of tellers that ended before their work was done."""
        self.transfers = transfers
        self.source = admin.create_topic("transfers", tellers, replicas=replicas)
        self.ledgers = [admin.create_topic(name, PARTITIONS, replicas=replicas) for name in ("debits", "credits")]
        self.places: list[Place] = [(topic, partition) for topic in self.ledgers for partition in range(PARTITIONS)]
        self.booked = [0] * tellers
        self._order(tellers, transfers)
        self._at_work: dict[int, subprocess.Popen[str]] = {}
        self._closed = threading.Event()
        self._seen: dict[Place, dict[int, str]] = {place: {} for place in self.places}
        self._threads = [threading.Thread(target=self._employ, args=(teller,)) for teller in range(tellers)]
        self._auditor = threading.Thread(target=self._read_along)

    def _order(self, tellers: int, transfers: int) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "batch.size": 10_000}
        )  # a batch has to fit into a segment, which is small here
        lost: list[object] = []
        for teller in range(tellers):
            for number in range(transfers):
                payer, payee = self._random.sample(range(ACCOUNTS), 2)
                order = {"id": f"{teller}-{number}", "from": payer, "to": payee, "sum": self._random.randint(1, 100)}
                producer.produce(
                    self.source,
                    json.dumps(order),
                    partition=teller,
                    on_delivery=lambda error, _: lost.append(error) if error is not None else None,
                )
        assert producer.flush(READ_TIMEOUT_S) == 0
        assert not lost, f"{len(lost)} orders were refused: {lost[0]}"

    # -- work ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        for thread in (*self._threads, self._auditor):
            thread.start()

    def wait(self, timeout_s: float) -> None:
        """Until all is booked."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        assert not any(thread.is_alive() for thread in self._threads), f"{self.booked} booked; {self.failures[-5:]}"

    def close(self) -> None:
        self._closed.set()
        for teller in list(self._at_work):
            self.kill_teller(teller)
        for thread in (*self._threads, self._auditor):
            if thread.ident is not None:
                thread.join()

    def _employ(self, teller: int) -> None:
        session = 0
        while self.booked[teller] < self.transfers and not self._closed.is_set():
            session += 1
            contract = Contract(
                bootstrap=self._bootstrap,
                teller=teller,
                session=f"{self._seed}-{teller}-{session}",
                source=self.source,
                ledgers=self.ledgers,
                partitions=PARTITIONS,
                transfers=self.transfers,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            )
            said = "nothing"
            with subprocess.Popen(
                contract.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=REPOSITORY
            ) as process:
                self._at_work[teller] = process
                assert process.stdout is not None
                for line in process.stdout:
                    said = self._note(teller, line) or said
            if process.returncode:
                self.failures.append(f"teller {contract.session} ended with {process.returncode}: {said}")

    def _note(self, teller: int, line: str) -> str | None:
        """Note an event of a teller; returns a line that is none."""
        match line.split():
            case ["booked", number]:
                self.booked[teller] = max(self.booked[teller], int(number))
            case ["aborted", attempt]:
                self.aborted.add(attempt)
            case _:
                return line.strip()
        return None

    def kill_teller(self, teller: int) -> None:
        """SIGKILL to the teller with this number; another one takes its place."""
        process = self._at_work.get(teller)
        if process is not None:
            process.kill()

    def outlive(self, broker: Mortal, kills: int, rng: random.Random) -> None:
        """Work until all is booked, while the broker and the tellers are killed so many times each."""
        self.open()
        victims = [victim for _ in range(kills) for victim in ("broker", "teller")]
        rng.shuffle(victims)
        for victim in victims:
            self._wait_for_progress()
            time.sleep(rng.uniform(0, 0.3))
            if victim == "broker":
                broker.kill()
                broker.start()
            else:
                self.kill_teller(rng.randrange(len(self.booked)))
        self.wait(90 + self.transfers)

    def _wait_for_progress(self) -> None:
        before = sum(self.booked)
        deadline = time.monotonic() + 3 * PATIENCE_S
        while sum(self.booked) == before and before < len(self.booked) * self.transfers:
            if time.monotonic() > deadline:
                raise ProcessError(f"no progress: {self.booked} booked; {self.failures[-5:]}")
            time.sleep(0.01)

    def _read_along(self) -> None:
        """Read committed records while transactions go on."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "not-used",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for topic, partition in self.places])
        while not self._closed.is_set():
            for message in consumer.consume(100, 0.2):
                if message.error() is None:
                    seen = self._seen[message.topic(), message.partition()]
                    assert message.offset() not in seen
                    seen[message.offset()] = message.value().decode()
        consumer.close()

    # -- the audit -------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Every transfer is booked once on either side, no aborted entry is seen, and the accounts balance."""
        books = {place: ConfluentTransactions().read_stable(self._bootstrap, *place) for place in self.places}
        self.close()
        for place, seen in self._seen.items():
            assert seen.items() <= dict(books[place]).items(), f"{place} was read otherwise while it was written"
        entries = {
            topic: [json.loads(value) for place in self.places if place[0] == topic for _, value in books[place]]
            for topic in self.ledgers
        }
        wanted = Counter(f"{teller}-{number}" for teller in range(len(self.booked)) for number in range(self.transfers))
        for topic, side in entries.items():
            booked = Counter(entry["id"] for entry in side)
            assert booked == wanted, f"{topic}: {wanted - booked} is missing, {booked - wanted} is booked again"
            assert not {entry["try"] for entry in side} & self.aborted
        debits, credits_ = ({(entry["try"], entry["id"]) for entry in side} for side in entries.values())
        assert debits == credits_, "a transaction is torn"
        assert sum(entry["sum"] for side in entries.values() for entry in side) == 0
