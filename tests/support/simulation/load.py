"""Clients of a simulated cluster: producers with acks=all, and readers.

A client has its own machine in the network, asks any broker who leads, and asks again after every error. A producer
sends one batch at a time and repeats it until it is acknowledged; a plain one may give up (its record may be there or
not, once or more), an idempotent one never does, and its records must be there exactly once and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.ticker import Ticker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.system_timer import SystemTimer
from tests.support.simulation.broker import end_point, make_link
from tests.support.simulation.committed import Violation
from tests.support.simulation.environment.virtual_loop import VirtualClock
from tests.support.simulation.oracle import Oracle

if TYPE_CHECKING:
    from odradek.broker.inter_broker.broker_connection import BrokerConnection
    from odradek.protocol.codec.schema import Request, Response
    from tests.support.simulation.environment.network import Network

REQUEST_TIMEOUT_MS: Final = 2_000
ACKS_TIMEOUT_MS: Final = 1_500
PACES_MS: Final = (60, 300, 1_000)
"""The longest pause of a producer between two batches; each draws its own."""
READER_PACE_MS: Final = 800
ATTEMPTS_MAX: Final = 4
"""After which a plain producer gives up."""

EXPECTED_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        # From a leader that does not know its successor yet: it has not got the later records.
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
"""Errors that clients of Apache Kafka get, too, when brokers start and stop."""


class Client:
    """A machine that talks to the brokers."""

    def __init__(self, name: str, network: Network, brokers: Sequence[int], oracle: Oracle, rng: Random) -> None:
        self.name = name
        self.machine = network.loop.add_machine(name)
        self.oracle = oracle
        self.rng = rng
        self.brokers = brokers
        self.leaders: dict[TopicPartition, int] = {}
        self._network = network
        self._clock = clock = VirtualClock(network.loop)
        self._timer = SystemTimer(clock)
        self._ticker = Ticker(network.loop, clock, self._timer)
        self._links: dict[int, BrokerConnection] = {}
        self.is_stopping = False

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        context = self.machine.context.copy()
        context.run(self._ticker.start)
        return self._network.loop.start(work, context)

    async def ask(
        self,
        broker_id: int,
        request: Request,
        answer: type[Response],
        version: int,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> Response | None:
        """The answer; None if there was none."""
        link = self._links.get(broker_id)
        if link is None:
            link = make_link(self._network, self.machine, self._timer, end_point(broker_id), self.name)
            self._links[broker_id] = link
        try:
            return await link.exchange(request, answer, version=version, timeout_ms=timeout_ms)
        except OSError:
            return None

    async def leader(self, partition: TopicPartition) -> int | None:
        """The leader that this client knows."""
        if partition not in self.leaders:
            broker_id = self.rng.choice(self.brokers)
            answer = await self.ask(broker_id, MetadataRequest(topics=None), MetadataResponse, 12)
            for topic in answer.topics if answer else ():
                for state in topic.partitions:
                    if state.leader_id >= 0:
                        self.leaders[TopicPartition(topic.name, state.partition_index)] = state.leader_id
        return self.leaders.get(partition)

    def refused(self, partition: TopicPartition, error_code: int) -> None:
        """Handle an answer with an error: forget the leader. Raises: Violation for an unexpected error."""
        self.leaders.pop(partition, None)
        if error_code not in EXPECTED_ERRORS:
            raise Violation(f"{self.name} got {ErrorCode(error_code).name} for {partition}")

    async def pause(self, ms_max: int) -> None:
        await asyncio.sleep(self.rng.randint(1, ms_max) / 1000)


class Producer(Client):
    """`sent` are the values of each partition in order, `unsure` those that may be there or not."""

    retry_pause_ms = 200

    def __init__(
        self,
        name: str,
        network: Network,
        brokers: Sequence[int],
        oracle: Oracle,
        rng: Random,
        *,
        partitions: Sequence[TopicPartition],
        is_idempotent: bool,
    ) -> None:
        super().__init__(name, network, brokers, oracle, rng)
        self.partitions = partitions
        self.is_idempotent = is_idempotent
        self.sent: dict[TopicPartition, list[bytes]] = {partition: [] for partition in partitions}
        self.acknowledged = 0
        self.is_idle = False
        self._pace_ms = rng.choice(PACES_MS)
        self._producer_id = -1
        self._number = 0

    async def run(self) -> None:
        while not self.is_stopping:
            if self.is_idempotent and self._producer_id < 0:
                await self._get_id()
            else:
                await self._send(self.rng.choice(self.partitions))
            await self.pause(self._pace_ms)
        self.is_idle = True

    async def _get_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        answer = await self.ask(self.rng.choice(self.brokers), request, InitProducerIdResponse, 4)
        if answer is not None and not answer.error_code:
            self._producer_id = answer.producer_id

    async def _send(self, partition: TopicPartition) -> None:
        values = []
        for _ in range(self.rng.randint(1, 3)):
            self._number += 1
            values.append(f"{self.name}-{self._number}".encode())
        batch = self._batch(partition, values)
        self.sent[partition] += values
        attempts = 0
        while not await self._try(partition, batch, values):
            attempts += 1
            if not self.is_idempotent and (attempts >= ATTEMPTS_MAX or self.is_stopping):
                return
            await self.pause(self.retry_pause_ms)
        self.acknowledged += len(values)

    def _batch(self, partition: TopicPartition, values: list[bytes]) -> memoryview:
        records = [SimpleRecord(timestamp=self._clock.time_ms(), key=None, value=value) for value in values]
        if not self.is_idempotent:
            return memoryview(build_batch(records))
        return memoryview(
            build_batch(
                records,
                producer_id=self._producer_id,
                producer_epoch=0,
                base_sequence=len(self.sent[partition]),
            )
        )

    async def _try(self, partition: TopicPartition, batch: memoryview, values: list[bytes]) -> bool:
        leader = await self.leader(partition)
        if leader is None:
            return False
        data = PartitionProduceData(index=partition.partition, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=ACKS_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
        )
        answer = await self.ask(leader, request, ProduceResponse, 9)
        if answer is None:
            self.leaders.pop(partition, None)
            return False
        (result,) = answer.responses[0].partition_responses
        if result.error_code:
            self.refused(partition, result.error_code)
            return False
        self.oracle.acknowledge(partition, result.base_offset, values)
        return True


class Reader(Client):
    """Reads every partition from the beginning, at its leader or at any replica."""

    def __init__(
        self,
        name: str,
        network: Network,
        brokers: Sequence[int],
        oracle: Oracle,
        rng: Random,
        *,
        partitions: Sequence[TopicPartition],
    ) -> None:
        super().__init__(name, network, brokers, oracle, rng)
        self.partitions = partitions
        self.positions = dict.fromkeys(partitions, 0)

    async def run(self) -> None:
        while not self.is_stopping:
            await self._read(self.rng.choice(self.partitions))
            await self.pause(READER_PACE_MS)

    async def _read(self, partition: TopicPartition) -> None:
        broker_id: int | None = self.rng.choice(self.brokers)
        if self.rng.random() < 0.7:
            broker_id = await self.leader(partition)
        if broker_id is None:
            return
        fetch = FetchPartition(
            partition=partition.partition, fetch_offset=self.positions[partition], partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=200, min_bytes=1, topics=[FetchTopic(topic=partition.topic, partitions=[fetch])]
        )
        answer = await self.ask(broker_id, request, FetchResponse, 12)
        if answer is None or answer.error_code:
            self.leaders.pop(partition, None)
            return
        (result,) = answer.responses[0].partitions
        if result.error_code:
            self.refused(partition, result.error_code)
        elif result.records:
            position = self.oracle.check_read(partition, result.records, f"{self.name} at broker{broker_id}")
            self.positions[partition] = max(self.positions[partition], position)
