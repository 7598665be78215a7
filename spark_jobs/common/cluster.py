"""What a job asks a cluster from its driver, beside Spark: topics, their configs and replicas, and offsets.

It uses the client of the project's own commands, which any broker of Kafka's protocol answers. Each call makes links
and closes them again. Every method raises JobError, of one line, if no broker answers or one answers with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.broker.tools.admin.client.offset_lookups import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_RECORD,
    FoundOffset,
    OffsetLookups,
)
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.broker.tools.command.socket_loop import run
from odradek.controller.model.assignment import BROKER_DEFAULT
from odradek.controller.model.config_codes import ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import SystemClock
from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from spark_jobs.common.kafka_options import KafkaConnection

T = TypeVar("T")
CREATE_TIMEOUT_MS = 30_000


class LogRange(NamedTuple):
    """What a partition holds: the offsets from `begin` to before `end`."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which brokers are alive, and which have replicas of which partitions."""

    cluster_id: str | None
    racks: Mapping[int, str | None]  # of the brokers that are alive
    replicas: Mapping[TopicPartition, tuple[int, ...]]  # the preferred leader first
    reassigning: frozenset[TopicPartition]


class Cluster:
    """Questions to the brokers of one cluster."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection

    def partition_counts(self, topics: Collection[str] | None) -> dict[str, int]:
        """The number of partitions of each of these topics that is there; None: of all that this client may describe.

        Raises: JobError also if the client has no right to describe one that is named.
        """

        async def ask(client: AdminClient) -> dict[str, int]:
            metadata = await client.metadata(topics)
            for topic in metadata.topics:
                if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise JobError(f"no right to describe the topic {topic.name} on {self._servers}")
            return {topic.name or "": len(topic.partitions) for topic in metadata.topics if topic.partitions}

        return {} if topics is not None and not topics else self._run(ask)

    def check_topics(self, topics: Collection[str]) -> dict[str, int]:
        """The number of partitions of each of these topics. Raises: JobError that names those that are not there."""
        there = self.partition_counts(topics)
        missing = sorted(set(topics) - there.keys())
        if len(missing) == 1:
            raise JobError(f"there is no topic {missing[0]} on {self._servers}: create it first, or check the name")
        if missing:
            names = ", ".join(missing)
            raise JobError(f"there are no topics {names} on {self._servers}: create them first, or check the names")
        return there

    def topic_configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """The configs of topics; without those that this client may not see."""
        resources = [
            DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=None)
            for topic in topics
        ]

        async def ask(client: AdminClient) -> dict[str, dict[str, str]]:
            response = await client.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
            return {
                result.resource_name: {config.name: config.value or "" for config in result.configs}
                for result in response.results
                if result.error_code == ErrorCode.NONE
            }

        return self._run(ask) if resources else {}

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> int:
        """Create a topic with the cluster's number of replicas; `partitions` may be `BROKER_DEFAULT`, too.

        Returns the number of partitions, when each of them has a leader.
        """
        new = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=BROKER_DEFAULT,
            assignments=[],
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )

        async def ask(client: AdminClient) -> int:
            request = CreateTopicsRequest(topics=[new], timeout_ms=CREATE_TIMEOUT_MS)
            (result,) = (await client.ask_controller(request, CreateTopicsResponse)).topics
            check(result.error_code, result.error_message, f"the topic {topic} cannot be created")
            async for _ in client.attempts():
                (there,) = (await client.metadata([topic])).topics
                if there.partitions and all(each.leader_id >= 0 for each in there.partitions):
                    return len(there.partitions)
            raise JobError(f"the topic {topic} was created and has no leaders yet: start the job again")

        return self._run(ask)

    def placement(self) -> Placement:
        """Of all topics that this client may describe."""

        async def ask(client: AdminClient) -> Placement:
            metadata = await client.metadata(None)
            return Placement(
                cluster_id=metadata.cluster_id,
                racks={broker.node_id: broker.rack for broker in metadata.brokers},
                replicas={
                    TopicPartition(topic.name or "", partition.partition_index): tuple(partition.replica_nodes)
                    for topic in metadata.topics
                    for partition in topic.partitions
                },
                reassigning=frozenset(await client.reassignments()),
            )

        return self._run(ask)

    def log_ranges(
        self, counts: Mapping[str, int], starting_timestamp_ms: int | None = None, *, read_committed: bool = False
    ) -> dict[TopicPartition, LogRange]:
        """What each partition of these topics holds, given their numbers of partitions, or from a time on.

        A partition without a record that late begins at its end. `read_committed`: a partition ends where its first
        open transaction begins.
        """
        partitions = [TopicPartition(topic, index) for topic, count in counts.items() for index in range(count)]
        first = EARLIEST_TIMESTAMP if starting_timestamp_ms is None else starting_timestamp_ms

        async def ask(client: AdminClient) -> dict[TopicPartition, LogRange]:
            lookups = OffsetLookups(client, read_committed=read_committed)
            begins = await lookups.at(partitions, first)
            ends = await lookups.at(partitions, LATEST_TIMESTAMP)
            return {tp: _range(begins[tp], ends[tp]) for tp in partitions}

        return self._run(ask) if partitions else {}

    def offsets(self, requests: Iterable[Mapping[TopicPartition, int]]) -> list[dict[TopicPartition, FoundOffset]]:
        """For each request, the offset of each partition at its timestamp (ms, or -1 for the end), or an error."""

        async def ask(client: AdminClient) -> list[dict[TopicPartition, FoundOffset]]:
            lookups = OffsetLookups(client)
            return [await lookups.find(timestamps) for timestamps in requests]

        return self._run(ask)

    @property
    def _servers(self) -> str:
        return self._connection.bootstrap_servers

    def _run(self, ask: Callable[[AdminClient], Coroutine[object, object, T]]) -> T:
        clock = SystemClock()
        config = self._connection.tool_config()

        async def work() -> T:
            client = AdminClient(config, clock)
            try:
                return await ask(client)
            finally:
                client.close()

        try:
            return run(work(), clock)
        except (CommandFailed, OSError) as error:
            raise JobError(str(error)) from None


def _range(begin: int, end: int) -> LogRange:
    return LogRange(end, end) if begin == NO_RECORD else LogRange(begin, max(begin, end))
