"""Transactions on a simulated cluster: producers that write one value to some partitions at a time, all or none.

A producer behaves like Apache Kafka's: it repeats a request that was not answered, and begins anew with InitProducerId
after an error that it cannot recover from. Now and then it does not: it abandons a transaction and begins anew, or an
old request of it arrives late. At the end a transaction is there as a whole if its commit was confirmed; not there at
all if its commit was never requested, or its abort was confirmed; and one of the two otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from odradek.protocol.messages.end_txn import EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.control import ControlRecordType, control_record_type
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.simulation.cluster import BROKERS, PARTITIONS, Simulation
from tests.support.simulation.committed import Violation
from tests.support.simulation.load import ACKS_TIMEOUT_MS, Client
from tests.support.simulation.oracle import Oracle
from tests.support.wire.requests import build

if TYPE_CHECKING:
    from odradek.protocol.codec.schema import Request, Response
    from odradek.storage.log.unified_log import UnifiedLog
    from tests.support.simulation.environment.network import Network

TRANSACTION_TIMEOUT_MS: Final = 4_000
TRANSACTION_COORDINATOR: Final = 1
READ_BYTES: Final = 1_000
E = ErrorCode

AGAIN: Final = frozenset(
    {
        E.CONCURRENT_TRANSACTIONS,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REQUEST_TIMED_OUT,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.OPERATION_NOT_ATTEMPTED,
        E.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which a client looks for the coordinator and asks again."""

OVER: Final = frozenset(
    {E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE, E.INVALID_PRODUCER_ID_MAPPING}
)
"""Errors that say that the transaction has timed out, or another producer has come; the last one, that a broker that
was paused still takes itself for the coordinator and does not know the producer. The Java client begins anew with
InitProducerId after it, too.
"""


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass
class Transaction:
    """A transaction: a value for each partition."""

    values: dict[TopicPartition, bytes]
    outcome: Outcome = Outcome.ABORTED
    """The outcome that the producer knows. Without a request to commit there is no other."""


class TransactionOverError(Exception):
    """The producer has to begin anew."""


class TransactionalProducer(Client):
    """`transactions` are all that were ever begun."""

    def __init__(
        self,
        name: str,
        network: Network,
        brokers: Sequence[int],
        oracle: Oracle,
        rng: Random,
        *,
        partitions: Sequence[TopicPartition],
        note: Callable[[str], None],
    ) -> None:
        super().__init__(name, network, brokers, oracle, rng)
        self.partitions = partitions
        self.transactions: list[Transaction] = []
        self.is_idle = False
        self._note = note
        self._coordinator: int | None = None
        self._producer_id = self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._late: list[tuple[TopicPartition, memoryview]] = []
        """Batches of transactions that are over."""

    @property
    def acknowledged(self) -> int:
        """Transactions whose commit was confirmed."""
        return sum(transaction.outcome is Outcome.COMMITTED for transaction in self.transactions)

    async def run(self) -> None:
        try:
            await self._run()
        except Violation as violation:
            self._network.loop.failures.append(violation)

    async def _run(self) -> None:
        while not self.is_stopping:
            await self._begin_anew()
            if self._late:
                await self._send(*self.rng.choice(self._late))  # must be refused, or be known already
            try:
                while not self.is_stopping:
                    await self._one_transaction()
                    await self.pause(300)
            except TransactionOverError:
                continue
        await self._begin_anew()  # which ends what was left open
        self.is_idle = True

    # -- asking ----------------------------------------------------------------------------------------------

    async def _ask_coordinator(
        self, request: Request, answer: type[Response], version: int, error_of: Callable[[Any], int]
    ) -> Any:
        """Ask until it is answered. Raises TransactionOverError."""
        while True:
            if self._coordinator is None:
                find = FindCoordinatorRequest(key=self.name, key_type=TRANSACTION_COORDINATOR)
                found: Any = await self.ask(self.rng.choice(self.brokers), find, FindCoordinatorResponse, 3)
                self._coordinator = None if found is None or found.error_code else found.node_id
            if self._coordinator is not None:
                told = await self.ask(self._coordinator, request, answer, version)
                error = ErrorCode.NETWORK_EXCEPTION if told is None else ErrorCode(error_of(told))
                if error == E.NONE:
                    return told
                if error in OVER:
                    self._note(f"{self.name}: {type(request).__name__} {error.name}")
                    raise TransactionOverError
                if error not in AGAIN and told is not None:
                    raise Violation(f"{self.name} got {error.name} for {request}")
                if error != E.CONCURRENT_TRANSACTIONS:
                    self._coordinator = None
            await self.pause(200)

    async def _begin_anew(self) -> None:
        request = build(
            ApiKey.INIT_PRODUCER_ID, transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        given = await self._ask_coordinator(request, InitProducerIdResponse, 4, lambda told: int(told.error_code))
        if (given.producer_id, given.producer_epoch) <= (self._producer_id, self._epoch):
            raise Violation(f"{self.name} was given {given} after {self._producer_id}/{self._epoch}")
        if self._producer_id not in (-1, given.producer_id):
            raise Violation(f"{self.name} was given {given}: its coordinator has forgotten {self._producer_id}")
        self._producer_id, self._epoch = given.producer_id, given.producer_epoch
        self._sequences.clear()

    # -- a transaction ---------------------------------------------------------------------------------------

    async def _one_transaction(self) -> None:
        partitions = self.rng.sample(list(self.partitions), self.rng.randint(1, len(self.partitions)))
        number = len(self.transactions)
        transaction = Transaction({tp: f"{self.name}-{number}-{tp.partition}".encode() for tp in partitions})
        self.transactions.append(transaction)
        who = {"transactional_id": self.name, "producer_id": self._producer_id, "producer_epoch": self._epoch}
        topics = [{"name": tp.topic, "partitions": [tp.partition]} for tp in partitions]
        old = {f"v3_and_below_{name}": value for name, value in {**who, "topics": topics}.items()}
        await self._ask_coordinator(
            build(ApiKey.ADD_PARTITIONS_TO_TXN, **old),
            AddPartitionsToTxnResponse,
            3,
            lambda told: max(
                part.partition_error_code
                for topic in told.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            ),
        )
        for partition, value in transaction.values.items():
            await self._write(partition, value)
            if self.rng.random() < 0.05:
                await self.pause(2 * TRANSACTION_TIMEOUT_MS)
        if self.rng.random() < 0.1:
            raise TransactionOverError  # left where it is
        committed = self.rng.random() < 0.7
        if committed:
            transaction.outcome = Outcome.UNKNOWN
        request = build(ApiKey.END_TXN, **who, committed=committed)
        await self._ask_coordinator(request, EndTxnResponse, 3, lambda told: int(told.error_code))
        transaction.outcome = Outcome.COMMITTED if committed else Outcome.ABORTED

    async def _write(self, partition: TopicPartition, value: bytes) -> None:
        sequence = self._sequences.get(partition, 0)
        batch = memoryview(
            build_batch(
                [SimpleRecord(self._clock.time_ms(), None, value)],
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
        )
        self._late.append((partition, batch))
        while True:
            error = await self._send(partition, batch)
            if error == E.NONE:
                self._sequences[partition] = sequence + 1
                return
            if error in OVER:
                self._note(f"{self.name}: Produce {error.name}")
                raise TransactionOverError
            if error is not None and error not in AGAIN:
                raise Violation(f"{self.name} got {error.name} for {value.decode()}")
            await self.pause(200)

    async def _send(self, partition: TopicPartition, batch: memoryview) -> ErrorCode | None:
        leader = await self.leader(partition)
        if leader is None:
            return None
        data = [{"index": partition.partition, "records": memoryview(bytearray(batch))}]
        request = build(
            ApiKey.PRODUCE,
            transactional_id=self.name,
            acks=-1,
            timeout_ms=ACKS_TIMEOUT_MS,
            topic_data=[{"name": partition.topic, "partition_data": data}],
        )
        answer: Any = await self.ask(leader, request, ProduceResponse, 9)
        error = None if answer is None else ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if error != E.NONE:
            self.leaders.pop(partition, None)
        if error == E.OUT_OF_ORDER_SEQUENCE_NUMBER and not self.oracle.is_leader(leader, partition):
            # A broker that is cut off still takes itself for the leader, and has not seen what came before. The Java
            # client aborts the transaction and begins anew.
            self._note(f"{self.name}: Produce {error.name} from broker{leader}, which leads no more")
            raise TransactionOverError
        return error


# -- the end -------------------------------------------------------------------------------------------------


def committed_values(log: UnifiedLog) -> list[bytes]:
    """What a reader of committed data sees of a log, which has to be stable up to its end."""
    offset, found = log.log_start_offset, []
    while offset < log.log_end_offset:
        fetched = log.read(offset, READ_BYTES, FetchIsolation.TXN_COMMITTED, min_one_message=True)
        data = fetched.records if isinstance(fetched.records, memoryview) else memoryview(fetched.records.read())
        waiting = sorted(fetched.aborted_transactions or (), key=lambda txn: txn.first_offset)
        aborting: set[int] = set()
        before = offset
        for batch in batches(data):
            while waiting and waiting[0].first_offset <= batch.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            offset = batch.next_offset
            if batch.is_control:
                if control_record_type(batch) is ControlRecordType.ABORT:
                    aborting.discard(batch.producer_id)
            elif batch.producer_id not in aborting:
                found += [bytes(record.value or b"") for record in batch.records()]
        if offset == before:
            raise Violation(f"{log} is stable up to {log.last_stable_offset}")
    return found


def check_outcomes(producers: Sequence[TransactionalProducer], seen: dict[TopicPartition, list[bytes]]) -> str:
    """Raises Violation. Answers how many there were of each outcome."""
    counts = dict.fromkeys(Outcome, 0)
    for partition, values in seen.items():
        if len(values) != len(set(values)):
            raise Violation(f"{partition}: something is there twice: {values}")
    expected = set()
    for producer in producers:
        for transaction in producer.transactions:
            counts[transaction.outcome] += 1
            there = [tp for tp, value in transaction.values.items() if value in seen[tp]]
            is_whole = len(there) == len(transaction.values)
            fits = {
                Outcome.COMMITTED: is_whole,
                Outcome.ABORTED: not there,
                Outcome.UNKNOWN: is_whole or not there,
            }[transaction.outcome]
            if not fits:
                raise Violation(f"{transaction} is there in {there}")
            expected |= set(transaction.values.values())
    strangers = {value for values in seen.values() for value in values} - expected
    if strangers:
        raise Violation(f"nobody has written {strangers}")
    return ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items())


class TransactionSimulation(Simulation):
    """A simulation whose records are all of transactions."""

    def __init__(self, seed: int, directory: Path) -> None:
        super().__init__(seed, directory)
        self.producers = [
            TransactionalProducer(
                f"t{number}",
                self.network,
                BROKERS,
                self.oracle,
                Random(self._rng.random()),
                partitions=PARTITIONS,
                note=self.note,
            )
            for number in range(3)
        ]

    def _what_is_missing_in(self, partition: TopicPartition) -> str:
        for broker in self.brokers:
            hosted = None if broker.services is None else broker.services.replica_manager.hosted(partition)
            if hosted is not None and (log := hosted.log) is not None and log.last_stable_offset < log.log_end_offset:
                return f"at {broker.name} it is stable up to {log.last_stable_offset} of {log.log_end_offset}"
        return super()._what_is_missing_in(partition)

    def _check_logs(self) -> None:
        for broker in self.brokers:
            logs = {tp: broker.services.replica_manager.hosted(tp).log for tp in PARTITIONS}
            counts = check_outcomes(self.producers, {tp: committed_values(log) for tp, log in logs.items()})
        self.note(counts)
