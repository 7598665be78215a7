"""What a job asks a cluster from its driver, before or beside Spark: topics, their configs, the ends of their logs.

It uses the client of the project's own commands, which any broker of Kafka's protocol answers. Each call makes links
and closes them again. Errors are JobErrors of one line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.controller.model.assignment import BROKER_DEFAULT
from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from spark_jobs.common.kafka_options import KafkaConnection

T = TypeVar("T")
CREATE_TIMEOUT_MS = 30_000


class LogRange(NamedTuple):
    """What a partition holds: the offsets from `start` to before `end`."""

    start: int
    end: int


class Cluster:
    """Questions to the brokers of one cluster."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection

    def partition_counts(self, topics: Collection[str] | None) -> dict[str, int]:
        """The number of partitions of each of these topics that is there; None: of all."""
        from odradek.protocol.errors import ErrorCode

        async def ask(client: AdminClient) -> dict[str, int]:
            metadata = await client.metadata(topics)
            for topic in metadata.topics:
                if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise JobError(f"no right to use the topic {topic.name}")
            return {topic.name or "": len(topic.partitions) for topic in metadata.topics if topic.partitions}

        return {} if topics is not None and not topics else self._run(ask)

    def check_topics(self, topics: Collection[str]) -> dict[str, int]:
        """The number of partitions of each of these topics. Raises: JobError if one is not there."""
        there = self.partition_counts(topics)
        missing = [topic for topic in topics if topic not in there]
        if missing:
            raise JobError(f"the topic {', '.join(missing)} is not there")
        return there

    def topic_configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """The configs of topics; without those that this client may not see."""
        from odradek.controller.model.config_codes import ResourceType
        from odradek.protocol.errors import ErrorCode
        from odradek.protocol.messages.describe_configs import (
            DescribeConfigsRequest,
            DescribeConfigsResource,
            DescribeConfigsResponse,
        )

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
        from odradek.broker.tools.command.failures import check
        from odradek.protocol.messages.create_topics import (
            CreatableTopic,
            CreatableTopicConfig,
            CreateTopicsRequest,
            CreateTopicsResponse,
        )

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

    def log_ranges(
        self, counts: Mapping[str, int], starting_timestamp_ms: int | None = None
    ) -> dict[tuple[str, int], LogRange]:
        """What each partition of these topics holds, given their numbers of partitions, or from a time on.

        A partition without a record that late begins at its end.
        """
        from odradek.broker.tools.admin.client.offset_lookups import (
            EARLIEST_TIMESTAMP,
            LATEST_TIMESTAMP,
            NO_RECORD,
            OffsetLookups,
        )
        from odradek.protocol.topic_partition import TopicPartition

        partitions = [TopicPartition(topic, index) for topic, count in counts.items() for index in range(count)]

        async def ask(client: AdminClient) -> dict[tuple[str, int], LogRange]:
            lookups = OffsetLookups(client)
            first = EARLIEST_TIMESTAMP if starting_timestamp_ms is None else starting_timestamp_ms
            starts = await lookups.at(partitions, first)
            ends = await lookups.at(partitions, LATEST_TIMESTAMP)
            return {
                (each.topic, each.partition): LogRange(
                    ends[each] if starts[each] == NO_RECORD else starts[each], ends[each]
                )
                for each in partitions
            }

        return self._run(ask) if partitions else {}

    def _run(self, ask: Callable[[AdminClient], Coroutine[object, object, T]]) -> T:
        from odradek.broker.tools.admin.client.admin_client import AdminClient
        from odradek.broker.tools.command.failures import CommandFailed
        from odradek.broker.tools.command.socket_loop import run
        from odradek.timer.clock import SystemClock

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
