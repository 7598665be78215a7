"""A cluster in memory for tests of producers and consumers: logs, leaders, one consumer group, transactions.

Broker N listens on port 9000 + N. A test may replace any answer with `on`, which may also raise OSError.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar, cast

from odradek.broker.tools.command.addresses import Address
from odradek.broker.tools.command.client_config import ClientConfig
from odradek.broker.tools.command.socket_loop import sleep, turn
from odradek.broker.tools.data.client.data_client import DataClient
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import Record, SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.offsets import SpecialTimestamp
from odradek.timer.clock import Clock
from tests.support.virtual_test import current_clock

R = TypeVar("R", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Response)

CONFIG = ClientConfig(
    bootstrap="host:9001,host:9002",
    client_id="test",
    request_timeout_ms=30_000,
    api_timeout_ms=60_000,
    retry_backoff_ms=100,
    connection_setup_timeout_ms=10_000,
    connection_setup_timeout_max_ms=10_000,
)


class DataCluster:
    """Brokers 1 and 2; broker 1 leads all partitions until a test moves them."""

    def __init__(self) -> None:
        self.clock = current_clock()
        self.brokers = [1, 2]
        self.logs: dict[TopicPartition, list[bytearray]] = defaultdict(list)
        self.log_starts: dict[TopicPartition, int] = defaultdict(int)
        self.leaders: dict[TopicPartition, int] = {}
        self.unreachable: set[int] = set()
        self.asked: list[tuple[int, Request]] = []
        self.new_topic_partitions = 0
        """Partitions of a topic that is created because it is asked for; 0: none is created."""
        self._last_producer_id = 100
        self.answers: dict[type[Request], Callable[[int, Request], Response]] = {}
        self.on(MetadataRequest, self._metadata)
        self.on(ProduceRequest, self.produce)
        self.on(FetchRequest, self.fetch)
        self.on(ListOffsetsRequest, self._list_offsets)
        self.on(FindCoordinatorRequest, self._find_coordinator)
        self.on(InitProducerIdRequest, self._init_producer_id)

    def on(self, request_type: type[R], answer: Callable[[int, R], Response]) -> None:
        """Answer this kind of request so."""
        self.answers[request_type] = cast("Callable[[int, Request], Response]", answer)

    def requests(self, request_type: type[R]) -> list[R]:
        """Those of a kind, in order."""
        return [request for _, request in self.asked if isinstance(request, request_type)]

    def create(self, topic: str, partitions: int = 1, leader: int = 1) -> None:
        for partition in range(partitions):
            self.leaders[TopicPartition(topic, partition)] = leader

    def append(self, key: TopicPartition, *records: SimpleRecord, **batch: object) -> None:
        """Append one batch."""
        built = build_batch(records, base_offset=self.end(key), **batch)  # type: ignore[arg-type]
        self.logs[key].append(built)

    def fill(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Append each value as a batch of its own."""
        for value in values:
            self.append(TopicPartition(topic, partition), SimpleRecord(self.clock.time_ms(), None, value))

    def end(self, key: TopicPartition) -> int:
        return RecordBatch(memoryview(self.logs[key][-1])).next_offset if self.logs[key] else self.log_starts[key]

    def records(self, key: TopicPartition) -> list[Record]:
        return [record for batch in self.logs[key] for record in RecordBatch(memoryview(batch)).records()]

    def client(self) -> DataClient:
        return DataClient(CONFIG, self.make_link, self.clock)

    def make_link(self, address: Address, config: ClientConfig, clock: Clock) -> FakeDataLink:
        return FakeDataLink(self, address.port - 9000)

    async def later(self, delay_ms: int, change: Callable[[], None]) -> None:
        """Change something after a time."""
        await sleep(self.clock.monotonic_ms() + delay_ms)
        change()

    def _metadata(self, broker_id: int, request: MetadataRequest) -> Response:
        known = {topic for topic, _ in self.leaders}
        names = sorted(known) if request.topics is None else [wanted.name or "" for wanted in request.topics]
        for name in names:
            if name not in known and self.new_topic_partitions and request.allow_auto_topic_creation:
                self.create(name, self.new_topic_partitions)
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=found, host="host", port=9000 + found) for found in self.brokers],
            topics=[self._described(name) for name in names],
        )

    def _described(self, name: str) -> MetadataResponseTopic:
        found = {key.partition: leader for key, leader in self.leaders.items() if key.topic == name}
        partitions = [MetadataResponsePartition(partition_index=i, leader_id=leader) for i, leader in found.items()]
        return MetadataResponseTopic(
            name=name,
            error_code=ErrorCode.NONE if found else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            topic_id=name.encode().ljust(16, b"_"),
            partitions=partitions,
        )

    def produce(self, broker_id: int, request: ProduceRequest, error: int = ErrorCode.NONE) -> ProduceResponse:
        """Append what is led by the broker; answer `error` for all where one is given."""
        responses = []
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                key = TopicPartition(topic.name, data.index)
                code = error or (
                    ErrorCode.NONE if self.leaders.get(key) == broker_id else ErrorCode.NOT_LEADER_OR_FOLLOWER
                )
                answers.append(PartitionProduceResponse(index=data.index, error_code=code, base_offset=self.end(key)))
                if code == ErrorCode.NONE:
                    batch = bytearray(cast("bytes", data.records))
                    batch[:8] = self.end(key).to_bytes(8, "big")
                    self.logs[key].append(batch)
            responses.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
        return ProduceResponse(responses=responses)

    def fetch(self, broker_id: int, request: FetchRequest) -> FetchResponse:
        """The first batch from the fetch offset on, of each partition."""
        responses = []
        for topic in request.topics:
            found = []
            for asked in topic.partitions:
                key = TopicPartition(topic.topic, asked.partition)
                data = PartitionData(partition_index=asked.partition, records=b"", high_watermark=self.end(key))
                if self.leaders.get(key) != broker_id:
                    data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif not self.log_starts[key] <= asked.fetch_offset <= self.end(key):
                    data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                else:
                    views = [RecordBatch(memoryview(batch)) for batch in self.logs[key]]
                    data.records = next((b.buffer for b in views if b.last_offset >= asked.fetch_offset), b"")
                found.append(data)
            responses.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=found))
        return FetchResponse(responses=responses)

    def _list_offsets(self, broker_id: int, request: ListOffsetsRequest) -> Response:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._offset(broker_id, TopicPartition(topic.name, asked.partition_index), asked.timestamp)
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _offset(self, broker_id: int, key: TopicPartition, timestamp: int) -> ListOffsetsPartitionResponse:
        if self.leaders.get(key) != broker_id:
            return ListOffsetsPartitionResponse(
                partition_index=key.partition, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        offset = next((found.offset for found in self.records(key) if found.timestamp >= timestamp), -1)
        if timestamp == SpecialTimestamp.EARLIEST:
            offset = self.log_starts[key]
        elif timestamp == SpecialTimestamp.LATEST:
            offset = self.end(key)
        return ListOffsetsPartitionResponse(partition_index=key.partition, offset=offset)

    def _find_coordinator(self, broker_id: int, request: FindCoordinatorRequest) -> Response:
        found = [Coordinator(key=key, node_id=2, host="host", port=9002) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    def _init_producer_id(self, broker_id: int, request: InitProducerIdRequest) -> Response:
        self._last_producer_id += 1
        return InitProducerIdResponse(producer_id=self._last_producer_id, producer_epoch=0)


class FakeDataLink:
    """A link to a broker of the cluster."""

    def __init__(self, cluster: DataCluster, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id

    async def exchange(
        self, request: Request, response_type: type[ResponseT], timeout_ms: int, *, version: int | None = None
    ) -> ResponseT:
        await turn()
        if self._broker_id in self._cluster.unreachable:
            raise ConnectionRefusedError(f"broker {self._broker_id} is down")
        self._cluster.asked.append((self._broker_id, request))
        response = self._cluster.answers[type(request)](self._broker_id, request)
        assert isinstance(response, response_type)
        return response

    async def send(self, request: Request, timeout_ms: int) -> None:
        await self.exchange(request, Response, timeout_ms)

    def close(self) -> None:
        """Nothing is open."""
