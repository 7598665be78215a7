"""CreateTopics, DeleteTopics, CreatePartitions.

A change is validated against the tree and written to it; the controller's watches do the rest. The response waits until
this broker's metadata cache shows the result, through the port `TopicsReady`: **a topic is usable when CreateTopics
returns**. A topic that is not ready in time gets REQUEST_TIMED_OUT, although its creation or deletion continues; so
does every topic if the client does not wait (a timeout of 0 or less).

Error codes and messages are Kafka's.

Kafka: ZkAdminManager.createTopics, ZkAdminManager.deleteTopics, ZkAdminManager.createPartitions, AdminZkClient,
AutoTopicCreationManager.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.controller.admin.partition_allowance import PartitionAllowance
from odradek.controller.admin.policies import CreateTopicMetadata, Policies
from odradek.controller.loop_turns import in_turns
from odradek.controller.model import topic_names
from odradek.controller.model.assignment import BROKER_DEFAULT, RandomBelow, assign_replicas
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.tree.metadata_tree import BadVersion, Create, NodeExists, SetData, TreeError
from odradek.controller.znodes import topic_nodes, znodes
from odradek.controller.znodes.config_nodes import write_entity_config
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.config.log_config import validate_topic_configs

if TYPE_CHECKING:
    from odradek.controller.model.broker_info import Broker
    from odradek.controller.model.controller_config import ControllerConfig
    from odradek.controller.znodes.metadata_client import MetadataClient
    from odradek.protocol.error_patterns import ErrorPattern, ErrorPatterns
    from odradek.protocol.messages.create_partitions import CreatePartitionsTopic
    from odradek.protocol.messages.create_topics import CreatableTopic

logger = logging.getLogger(__name__)

LOGGED_TOPICS: Final = 100
"""Number of refused topics of a request that are logged. A request of 1 MB can name 80,000."""

RecordMutations = Callable[[int], None]
"""Counts partition mutations; may raise KafkaError(THROTTLING_QUOTA_EXCEEDED)."""


class TopicsReady(Protocol):
    """The port to this broker's metadata cache, which UpdateMetadata changes."""

    def contains(self, topic: str) -> bool:
        """Whether clients know the topic. One of which no partition ever had a leader is in the tree alone."""

    async def wait_for_leaders(self, partitions: Mapping[str, Collection[int]], timeout_ms: int) -> set[str]:
        """Wait until every partition has a leader. Returns the topics that still lack one after the timeout."""

    async def wait_for_deletion(self, topics: Collection[str], timeout_ms: int) -> set[str]:
        """Wait until the topics are deleted. Returns those that still exist after the timeout."""


class NamedTopic(Protocol):
    @property
    def name(self) -> str: ...


TopicT = TypeVar("TopicT", bound=NamedTopic)


@dataclass(slots=True, kw_only=True)
class TopicResult:
    """The result for one topic of a request. `overrides`: the configs with which the topic was created."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_id: bytes = ZERO_UUID
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    overrides: Mapping[str, str] = field(default_factory=dict)
    partitions: Collection[int] = ()

    @property
    def is_success(self) -> bool:
        return self.error_code is ErrorCode.NONE

    def time_out(self) -> None:
        self.error_code = ErrorCode.REQUEST_TIMED_OUT
        self.error_message = None


def _policy_metadata(
    topic: CreatableTopic, assignment: Mapping[int, tuple[int, ...]], overrides: Mapping[str, str]
) -> CreateTopicMetadata:
    is_assigned = bool(topic.assignments)
    return CreateTopicMetadata(
        topic=topic.name,
        num_partitions=None if is_assigned else len(assignment),
        replication_factor=None if is_assigned else len(assignment[0]),
        replicas_assignments=dict(assignment) if is_assigned else None,
        configs=dict(overrides),
    )


class TopicResults(Mapping[str, TopicResult]):
    """The results for the topics of one request, by name. Of those that are refused, the first ones are logged.

    An unexpected error, and one that says no more than its code, get no message. The result of a refused topic is made
    when it is read: a request of 1 MB may name 100,000 topics that do not exist.

    Kafka: ApiError.fromThrowable.
    """

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self._outcomes: dict[str, TopicResult | KafkaError | ErrorPattern] = {}
        self._patterns: ErrorPatterns | None = None
        self._refused = 0

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __getitem__(self, topic: str) -> TopicResult:
        outcome = self._outcomes[topic]
        if isinstance(outcome, TopicResult):
            return outcome
        error = outcome if isinstance(outcome, KafkaError) else outcome.about(topic)
        return TopicResult(name=topic, error_code=error.code, error_message=error.specific_message)

    async def add(self, topic: str, work: Awaitable[TopicResult]) -> None:
        try:
            self._outcomes[topic] = await work
            self.accepted.append(topic)
        except (KafkaError, TreeError, BadZnode) as error:
            self._refused += 1
            if self._refused <= LOGGED_TOPICS:
                logger.info("Error processing a request for topic %s: %r", topic, error)
            if self._patterns is None:
                from odradek.protocol.error_patterns import ErrorPatterns

                self._patterns = ErrorPatterns()
            refusal = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._outcomes[topic] = self._patterns.kept(refusal, topic)

    def log_rest(self) -> None:
        if self._refused > LOGGED_TOPICS:
            logger.info("%d more topics of the request were refused", self._refused - LOGGED_TOPICS)

    async def time_out(self, topics: Iterable[str]) -> None:
        """These topics were accepted, but were not ready within the timeout."""
        async for topic in in_turns(topics):
            self[topic].time_out()


class AdminManager:
    """See the module. One per broker; the handlers check that the broker is the controller."""

    def __init__(
        self,
        *,
        client: MetadataClient,
        config: ControllerConfig,
        ready: TopicsReady,
        random_below: RandomBelow,
        new_topic_id: Callable[[], bytes],
        policies: Policies,
    ) -> None:
        self._client = client
        self._config = config
        self._ready = ready
        self._random_below = random_below
        self._new_topic_id = new_topic_id
        self._policies = policies
        self._names = topic_names.TopicNames()

    # Create

    async def create_topics(
        self,
        topics: Sequence[CreatableTopic],
        *,
        timeout_ms: int,
        validate_only: bool = False,
        record_mutations: RecordMutations = lambda partitions: None,
    ) -> TopicResults:
        """Create topics and wait until they are usable."""
        brokers, allowance = await self._brokers(), PartitionAllowance()
        return await self._with_leaders(
            topics,
            lambda topic: self._create(topic, brokers, allowance, validate_only, record_mutations),
            None if validate_only else timeout_ms,
        )

    async def _create(
        self,
        topic: CreatableTopic,
        brokers: Sequence[Broker],
        allowance: PartitionAllowance,
        validate_only: bool,
        record_mutations: RecordMutations,
    ) -> TopicResult:
        if self._ready.contains(topic.name):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        null_configs = [config.name async for config in in_turns(topic.configs) if config.value is None]
        if null_configs:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(null_configs)}"
            )
        overrides = {config.name: config.value async for config in in_turns(topic.configs) if config.value is not None}
        assignment = self._assignment(topic, brokers, allowance)
        await self.validate_topic_create(topic.name, assignment, overrides)
        self._policies.validate_create_topic(_policy_metadata(topic, assignment, overrides))
        result = TopicResult(
            name=topic.name,
            num_partitions=len(assignment),
            replication_factor=len(assignment[0]),
            overrides=overrides,
            partitions=assignment.keys(),
        )
        if not validate_only:
            record_mutations(len(assignment))
            topic_id = await self.create_topic_with_assignment(topic.name, assignment, overrides)
            result.topic_id = topic_id or ZERO_UUID
        return result

    def _assignment(
        self, topic: CreatableTopic, brokers: Sequence[Broker], allowance: PartitionAllowance
    ) -> dict[int, tuple[int, ...]]:
        if topic.assignments:
            if topic.num_partitions != BROKER_DEFAULT or topic.replication_factor != BROKER_DEFAULT:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "Both numPartitions or replicationFactor and replicasAssignments were set. "
                    "Both cannot be used at the same time.",
                )
            return {assigned.partition_index: tuple(assigned.broker_ids) for assigned in topic.assignments}
        partitions = self._config.num_partitions if topic.num_partitions == BROKER_DEFAULT else topic.num_partitions
        allowance.take(partitions)
        factor = topic.replication_factor
        factor = self._config.default_replication_factor if factor == BROKER_DEFAULT else factor
        return assign_replicas(brokers, partitions, factor, self._random_below)

    async def validate_topic_create(
        self, topic: str, assignment: Mapping[int, Sequence[int]], overrides: Mapping[str, str]
    ) -> None:
        """Raise KafkaError if the topic cannot be created. Kafka: AdminZkClient.validateTopicCreate."""
        topic_names.validate_topic_name(topic)
        if await self._client.exists(znodes.delete_topic_path(topic)):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' is marked for deletion.")
        if await self._client.exists(znodes.topic_path(topic)):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
        if topic_names.has_collision_chars(topic):
            topics = await self._client.topics()
            if topic in topics:  # created in between: it would collide with itself
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
            self._names.update(topics)
            colliding = self._names.colliding(topic)
            if colliding:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{topic}' collides with existing topics: {', '.join(colliding)}",
                )
        _validate_assignment(assignment)
        validate_topic_configs(overrides, self._config.broker_settings())

    async def create_topic_with_assignment(
        self, topic: str, assignment: Mapping[int, Sequence[int]], overrides: Mapping[str, str]
    ) -> bytes | None:
        """Write a validated topic. Returns its id, None with an inter-broker protocol without topic ids.

        The config is written first, because the controller may process the topic at once.
        Kafka: AdminZkClient.createTopicWithAssignment.
        """
        await write_entity_config(self._client, f"topics/{topic}", overrides)
        topic_id = self._new_topic_id() if self._config.metadata_version.has_topic_ids else None
        full = {partition: ReplicaAssignment(tuple(replicas)) for partition, replicas in assignment.items()}
        try:
            await self._client.tree.run(Create(znodes.topic_path(topic), topic_nodes.encode_topic(topic_id, full)))
        except NodeExists:
            found = await self._client.topic_assignments([topic])
            # The node has this call's id if only the response was lost and the request was sent again.
            if topic_id is None or not found or found[0].topic_id != topic_id:
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.") from None
        return topic_id

    async def auto_create_topics(
        self, topics: Iterable[CreatableTopic], record_mutations: RecordMutations = lambda partitions: None
    ) -> dict[str, ErrorCode]:
        """Create topics for a Metadata or FindCoordinator request, without waiting. Returns the error of each."""
        results = await self.create_topics(list(topics), timeout_ms=0, record_mutations=record_mutations)
        started = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS)
        return {
            name: ErrorCode.LEADER_NOT_AVAILABLE if result.error_code in started else result.error_code
            async for name, result in in_turns(results.items())
        }

    async def _with_leaders(
        self, topics: Sequence[TopicT], work: Callable[[TopicT], Awaitable[TopicResult]], timeout_ms: int | None
    ) -> TopicResults:
        """Run `work` for each topic, then wait for the leaders of its partitions; with None, do not wait."""
        added = TopicResults()
        async for topic in in_turns(topics):
            await added.add(topic.name, work(topic))
        added.log_rest()
        if timeout_ms is not None:
            await self._wait_for_leaders(added, timeout_ms)
        return added

    async def _brokers(self) -> list[Broker]:
        return sorted(await self._client.brokers_and_epochs(), key=lambda broker: broker.id)

    async def _wait_for_leaders(self, added: TopicResults, timeout_ms: int) -> None:
        late: Iterable[str] = added.accepted
        if timeout_ms > 0 and added.accepted:
            partitions = {name: added[name].partitions async for name in in_turns(added.accepted)}
            late = await self._ready.wait_for_leaders(partitions, timeout_ms)
        await added.time_out(late)

    # Delete

    async def delete_topics(
        self,
        topics: Collection[str],
        *,
        timeout_ms: int,
        record_mutations: RecordMutations = lambda partitions: None,
    ) -> TopicResults:
        """Request the deletion of topics and wait until this broker's metadata cache has removed them."""
        added = TopicResults()
        async for topic in in_turns(topics):
            await added.add(topic, self._delete(topic, record_mutations))
        added.log_rest()
        late: Iterable[str] = added.accepted
        if timeout_ms > 0 and added.accepted:
            late = await self._ready.wait_for_deletion(added.accepted, timeout_ms)
        await added.time_out(late)
        return added

    async def _delete(self, topic: str, record_mutations: RecordMutations) -> TopicResult:
        count = await self._client.partition_count(topic) if topic_names.is_valid_topic_name(topic) else None
        if count is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic `{topic}` to delete does not exist")
        record_mutations(count)
        # A topic that is already marked for deletion is waited for as well.
        await self._client.create_recursive(znodes.delete_topic_path(topic))
        return TopicResult(name=topic)

    # Add partitions

    async def create_partitions(
        self,
        topics: Sequence[CreatePartitionsTopic],
        *,
        timeout_ms: int,
        validate_only: bool = False,
        record_mutations: RecordMutations = lambda partitions: None,
    ) -> TopicResults:
        """Add partitions to topics and wait until they are usable.

        Raises: KafkaError if only some brokers have a rack. Kafka: AdminZkClient.getBrokerMetadatas.
        """
        brokers, allowance = await self._brokers(), PartitionAllowance()
        if len({broker.rack is None for broker in brokers}) > 1:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Not all brokers have rack information.")
        return await self._with_leaders(
            topics,
            lambda topic: self._add_partitions(topic, brokers, allowance, validate_only, record_mutations),
            None if validate_only else timeout_ms,
        )

    async def _add_partitions(
        self,
        topic: CreatePartitionsTopic,
        brokers: Sequence[Broker],
        allowance: PartitionAllowance,
        validate_only: bool,
        record_mutations: RecordMutations,
    ) -> TopicResult:
        if not topic.name:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Apache, where the empty name makes a bad path
        path = znodes.topic_path(topic.name)
        written: bytes | None = None
        result = TopicResult(name=topic.name)
        while True:
            node = await self._client.get(path) if topic_names.is_valid_topic_name(topic.name) else None
            if node is not None and node.data == written:
                return result  # written already: the response was lost
            found = None if node is None else topic_nodes.decode_topic(topic.name, node.data)
            if node is None or found is None or not found.assignment:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic.name}' does not exist.")
            if any(assignment.is_being_reassigned for assignment in found.assignment.values()):
                raise KafkaError(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS,
                    f"A partition reassignment is in progress for the topic '{topic.name}'.",
                )
            if written is None:
                allowance.take(topic.count - len(found.assignment))
            added = self._added_assignment(topic, found.assignment, brokers)
            result.partitions = [*found.assignment, *added]
            if validate_only:
                return result
            if written is None:
                record_mutations(len(added))
            written = topic_nodes.encode_topic(found.topic_id, {**found.assignment, **added})
            try:
                await self._client.tree.run(SetData(path, written, node.stat.version))
            except BadVersion:
                continue  # the controller has changed the topic, or this write had succeeded: read it again
            return result

    def _added_assignment(
        self, topic: CreatePartitionsTopic, existing: Mapping[int, ReplicaAssignment], brokers: Sequence[Broker]
    ) -> dict[int, ReplicaAssignment]:
        increment = topic.count - len(existing)
        if increment < 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"Topic currently has {len(existing)} partitions, which is higher than the requested {topic.count}.",
            )
        if increment == 0:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {len(existing)} partitions.")
        first = existing.get(0)
        if first is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Unexpected existing replica assignment for topic '{topic.name}', partition id 0 is missing.",
            )
        start_id = len(existing)
        if topic.assignments is not None:
            manual = [tuple(assigned.broker_ids) for assigned in topic.assignments]
            _validate_manual_assignment(manual, increment, start_id, len(first.replicas), brokers)
            replicas = {start_id + index: assigned for index, assigned in enumerate(manual)}
        else:
            leader = first.replicas[0]
            start = next((index for index, broker in enumerate(brokers) if broker.id >= leader), 0)
            replicas = assign_replicas(
                brokers,
                increment,
                len(first.replicas),
                self._random_below,
                fixed_start_index=start,
                start_partition_id=start_id,
            )
        return {partition: ReplicaAssignment(assigned) for partition, assigned in replicas.items()}


def _validate_assignment(assignment: Mapping[int, Sequence[int]]) -> None:
    def invalid(message: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

    if len({len(replicas) for replicas in assignment.values()}) != 1:
        raise invalid("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        shown = ", ".join(f"{p} -> ArrayBuffer({', '.join(map(str, ids))})" for p, ids in assignment.items())
        raise invalid(f"Duplicate replica assignment found: HashMap({shown})")
    if sorted(assignment) != list(range(len(assignment))):
        raise invalid("partitions should be a consecutive 0-based integer sequence")


def _validate_manual_assignment(
    assignments: Sequence[tuple[int, ...]],
    increment: int,
    start_id: int,
    replication_factor: int,
    brokers: Sequence[Broker],
) -> None:
    def invalid(message: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

    def listed(ids: Iterable[object]) -> str:
        return ", ".join(map(str, ids))

    unknown = {replica for replicas in assignments for replica in replicas} - {broker.id for broker in brokers}
    if unknown:
        raise invalid(f"Unknown broker(s) in replica assignment: {listed(sorted(unknown))}.")
    if len(assignments) != increment:
        raise invalid(
            f"Increasing the number of partitions by {increment} but {len(assignments)} assignments provided."
        )
    for partition, replicas in enumerate(assignments, start_id):
        if not replicas:
            raise invalid(f"Cannot have replication factor of 0 for partition id {partition}.")
        if len(set(replicas)) != len(replicas):
            raise invalid(
                f"Duplicate brokers not allowed in replica assignment: {listed(replicas)} for partition id {partition}."
            )
    uneven = {p: len(r) for p, r in enumerate(assignments, start_id) if len(r) != replication_factor}
    if uneven:
        raise invalid(
            f"Inconsistent replication factor between partitions, partition 0 has {replication_factor} while "
            f"partitions [{listed(uneven)}] have replication factors [{listed(uneven.values())}], respectively."
        )
