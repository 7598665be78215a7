"""A cluster of controllers over one embedded tree, with brokers that only record the requests they get.

`ControllerCluster` opens a database in memory; each `FakeBroker` has a session, a registration and a controller, as a
real broker has. Control requests reach the brokers at once and in order, through `RecordingChannels`; every broker
answers without errors and applies UpdateMetadata to a little metadata cache of its own, so topics become ready as they
would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from odradek.controller.admin.policies import Policies
from odradek.controller.admin.topic_admin import AdminManager, TopicResult
from odradek.controller.channels import OnResponse
from odradek.controller.controller import Controller
from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.model.controller_config import ControllerConfig
from odradek.controller.states.request_batch import FIRST_VERSION_WITH_TOPIC_IDS, ControlRequest, ControlResponse
from odradek.controller.tree.embedded_tree import EmbeddedTree, TreeDatabase
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import create_base_nodes
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from odradek.protocol.metadata_version import LATEST_PRODUCTION
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.histogram import Histogram
from odradek.timer.system_timer import SystemTimer

SETTLE_ROUNDS = 200


class FakeBroker:
    """The handling of control requests by a fake broker. `requests` keeps them all, `leaders` is its metadata cache."""

    def __init__(self, broker_id: int, rack: str | None) -> None:
        point = EndPoint(f"host{broker_id}", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
        self.info = BrokerInfo(broker=Broker(broker_id, (point,), rack))
        self.requests: list[ControlRequest] = []
        self.leaders: dict[TopicPartition, int] = {}
        self.storage_errors: set[TopicPartition] = set()
        self.metadata_version = LATEST_PRODUCTION
        self.answers = True
        self.tree: EmbeddedTree | None = None
        self.controller: Controller | None = None

    @property
    def id(self) -> int:
        return self.info.broker.id

    def take_requests(self) -> list[ControlRequest]:
        taken, self.requests = self.requests, []
        return taken

    def handle(self, request: ControlRequest, topic_names: Mapping[bytes, str]) -> ControlResponse:
        self.requests.append(request)
        match request:
            case LeaderAndIsrRequest():
                return self._start_replicas(request)
            case UpdateMetadataRequest():
                self._update_metadata(request)
                return UpdateMetadataResponse()
            case StopReplicaRequest():
                errors = [
                    StopReplicaPartitionError(topic_name=topic.topic_name, partition_index=partition.partition_index)
                    for topic in request.topic_states
                    for partition in topic.partition_states
                ]
                return StopReplicaResponse(partition_errors=errors)

    def _start_replicas(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        topics = [
            LeaderAndIsrTopicError(
                topic_id=topic.topic_id,
                partition_errors=[self._started(topic.topic_name, p.partition_index) for p in topic.partition_states],
            )
            for topic in request.topic_states
        ]
        if self.metadata_version.leader_and_isr_request_version < FIRST_VERSION_WITH_TOPIC_IDS:
            return LeaderAndIsrResponse(
                partition_errors=[error for topic in topics for error in topic.partition_errors]
            )
        return LeaderAndIsrResponse(topics=topics)

    def _started(self, topic: str, partition: int) -> LeaderAndIsrPartitionError:
        error = 56 if TopicPartition(topic, partition) in self.storage_errors else 0
        return LeaderAndIsrPartitionError(topic_name=topic, partition_index=partition, error_code=error)

    def _update_metadata(self, request: UpdateMetadataRequest) -> None:
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                if state.leader == -2:
                    self.leaders.pop(partition, None)
                else:
                    self.leaders[partition] = state.leader

    # TopicsReady

    def contains(self, topic: str) -> bool:
        return any(partition.topic == topic for partition in self.leaders)

    async def wait_for_leaders(self, partitions: Mapping[str, Collection[int]], timeout_ms: int) -> set[str]:
        def late() -> set[str]:
            return {
                topic
                for topic, ids in partitions.items()
                if any(self.leaders.get(TopicPartition(topic, partition), -1) < 0 for partition in ids)
            }

        return await self._wait(late)

    async def wait_for_deletion(self, topics: Collection[str], timeout_ms: int) -> set[str]:
        return await self._wait(lambda: {partition.topic for partition in self.leaders} & set(topics))

    async def _wait(self, late: Callable[[], set[str]]) -> set[str]:
        """A round is as long as the thread of the tree needs for one answer."""
        assert self.tree is not None
        for _ in range(SETTLE_ROUNDS):
            if not late():
                break
            await MetadataClient(self.tree).exists("/")
        return late()


class RecordingChannels:
    """Delivers every request to the fake broker it is for, on the next turn of the loop."""

    def __init__(self, brokers: Mapping[int, FakeBroker]) -> None:
        self._brokers = brokers
        self.connected: set[int] = set()

    @property
    def queue_sizes(self) -> Mapping[int, int]:
        return dict.fromkeys(self.connected, 0)

    @property
    def queue_times_ms(self) -> Mapping[int, Histogram]:
        return {}

    def add_broker(self, broker: Broker) -> None:
        self.connected.add(broker.id)

    def remove_broker(self, broker_id: int) -> None:
        self.connected.discard(broker_id)

    def send(self, broker_id: int, request: ControlRequest, callback: OnResponse) -> None:
        if broker_id in self.connected:
            asyncio.get_running_loop().call_soon(self._deliver, broker_id, request, callback)

    def _deliver(self, broker_id: int, request: ControlRequest, callback: OnResponse) -> None:
        if broker_id not in self.connected:
            return
        broker = self._brokers[broker_id]
        response = broker.handle(request, {})
        if broker.answers:
            callback(response)

    def shutdown(self) -> None:
        self.connected.clear()


def wanted(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    *,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers)
            for partition, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


class ControllerCluster:
    def __init__(self, database: TreeDatabase, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.timer = SystemTimer(clock)
        self.brokers: dict[int, FakeBroker] = {}
        self.config_changes: dict[str, object] = {}
        self.policies = Policies(clock)
        self._topic_ids = 0

    # Life of brokers

    async def start(self, broker_id: int, *, rack: str | None = None, **config: object) -> Controller:
        broker = self.brokers.get(broker_id)
        if broker is None:
            broker = self.brokers[broker_id] = FakeBroker(broker_id, rack)
        controller_config = ControllerConfig(broker_id=broker_id, **config)
        broker.metadata_version = controller_config.metadata_version
        broker.tree = await self.database.connect()
        await create_base_nodes(MetadataClient(broker.tree))
        controller = broker.controller = Controller(
            tree=broker.tree,
            broker_info=broker.info,
            config=controller_config,
            clock=self.clock,
            timer=self.timer,
            channel=RecordingChannels(self.brokers),
            new_topic_id=self.new_topic_id,
        )
        await controller.register()
        await controller.start()
        await self.settle()
        return controller

    async def kill(self, broker_id: int) -> None:
        """Kill a broker: its session ends, and with it its ephemeral nodes."""
        broker = self.brokers[broker_id]
        assert broker.controller is not None
        assert broker.tree is not None
        await broker.controller.shutdown()
        await broker.tree.close()
        broker.controller = broker.tree = None
        broker.leaders.clear()
        await self.settle()

    async def expire(self, broker_id: int) -> None:
        tree = self.brokers[broker_id].tree
        assert tree is not None
        await tree.expire_session()
        await self.settle()

    async def settle(self) -> None:
        """Wait until no controller has work left and no request is under way."""
        quiet = 0
        while quiet < 3:
            for broker in self.brokers.values():
                if broker.controller is not None:
                    await broker.controller.settle()
            before = sum(len(broker.requests) for broker in self.brokers.values())
            await self._flush()
            after = sum(len(broker.requests) for broker in self.brokers.values())
            quiet = quiet + 1 if before == after else 0

    async def _flush(self) -> None:
        """A round trip through the tree: all earlier watch events have arrived."""
        for broker in self.brokers.values():
            if broker.tree is not None and not broker.tree.is_closed:
                await MetadataClient(broker.tree).exists("/")
                return

    # Looking inside

    @property
    def controller(self) -> Controller:
        active = [b.controller for b in self.brokers.values() if b.controller is not None and b.controller.is_active]
        assert len(active) == 1, active
        return active[0]

    @property
    def client(self) -> MetadataClient:
        return self.controller.client

    async def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Through the controller, as the API does."""
        outcomes = await self.controller.alter_partition_reassignments(targets.items())
        return dict(zip(targets, outcomes, strict=True))

    def take_requests(self) -> dict[int, list[ControlRequest]]:
        return {broker_id: broker.take_requests() for broker_id, broker in self.brokers.items()}

    async def state(self, topic: str, partition: int = 0) -> tuple[int, tuple[int, ...], int, int]:
        """Leader, ISR, leader epoch and partition epoch, as the tree has them."""
        term = self.controller.controllership
        assert term is not None
        topic_partition = TopicPartition(topic, partition)
        state = (await term.state_nodes.read_partition_states([topic_partition]))[topic_partition]
        assert state is not None
        leadership = state.leader_and_isr
        return leadership.leader, leadership.isr, leadership.leader_epoch, leadership.partition_epoch

    # Topics

    def new_topic_id(self) -> bytes:
        self._topic_ids += 1
        return self._topic_ids.to_bytes(16, "big")

    def admin(self, broker_id: int | None = None, **config: object) -> AdminManager:
        broker = self.brokers[self.controller.config.broker_id if broker_id is None else broker_id]
        assert broker.tree is not None
        return AdminManager(
            client=MetadataClient(broker.tree),
            config=ControllerConfig(broker_id=broker.id, **config),
            ready=broker,
            random_below=lambda below: 0,
            new_topic_id=self.new_topic_id,
            policies=self.policies,
        )

    async def create(
        self,
        topic: str,
        assignment: Mapping[int, Collection[int]],
        configs: Mapping[str, str] | None = None,
        *,
        timeout_ms: int = 1000,
    ) -> TopicResult:
        request = CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
                for partition, replicas in assignment.items()
            ],
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()],
        )
        results = await self.admin().create_topics([request], timeout_ms=timeout_ms)
        await self.settle()
        return results[topic]


@asynccontextmanager
async def controller_cluster(path: Path | str = ":memory:") -> AsyncIterator[ControllerCluster]:
    clock = ManualClock(1_700_000_000_000)
    database = await TreeDatabase.open(str(path), clock)
    cluster = ControllerCluster(database, clock)
    try:
        yield cluster
    finally:
        for broker in cluster.brokers.values():
            if broker.controller is not None:
                await broker.controller.shutdown()
        await database.close()
