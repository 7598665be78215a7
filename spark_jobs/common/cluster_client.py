"""Questions to a cluster that Spark's source cannot answer: which topics there are, and offsets at a time.

Each call is a blocking one, with links of its own, by the client of the project's commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.broker.tools.admin.client.offset_lookups import FoundOffset, OffsetLookups
from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import run
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import SystemClock
from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from spark_jobs.common.kafka_options import KafkaConnection

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which brokers are alive, and which have replicas of which partitions."""

    cluster_id: str | None
    racks: Mapping[int, str | None]  # of the brokers that are alive
    replicas: Mapping[TopicPartition, tuple[int, ...]]  # the preferred leader first
    reassigning: frozenset[TopicPartition]


class ClusterClient:
    """Asks the brokers of one cluster. Every method raises JobError if no broker answers."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions each of these topics has; a topic that is not there is left out."""
        named = list(topics)

        async def ask(client: AdminClient) -> dict[str, int]:
            found = (await client.metadata(named)).topics
            return {topic.name or "": len(topic.partitions) for topic in found if topic.error_code == ErrorCode.NONE}

        return self._run(ask) if named else {}

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

    def offsets(
        self, requests: Iterable[Mapping[TopicPartition, int]], *, read_committed: bool = False
    ) -> list[dict[TopicPartition, FoundOffset]]:
        """For each request, the offset of each partition at its timestamp (ms, or -1 for the end), or an error.

        `read_committed`: a partition ends where its first open transaction begins.
        """

        async def ask(client: AdminClient) -> list[dict[TopicPartition, FoundOffset]]:
            lookups = OffsetLookups(client, read_committed=read_committed)
            return [await lookups.find(timestamps) for timestamps in requests]

        return self._run(ask)

    def _run(self, ask: Callable[[AdminClient], Awaitable[ResultT]]) -> ResultT:
        clock = SystemClock()

        async def body() -> ResultT:
            client = AdminClient(self._connection.tool_config(), clock)
            try:
                return await ask(client)
            finally:
                client.close()

        try:
            return run(body(), clock)
        except (CommandFailed, OSError) as error:
            raise JobError(str(error)) from None


def check_topics(connection: KafkaConnection, topics: Iterable[str]) -> None:
    """Before a job starts Spark. Raises: JobError that names the topics that are not there."""
    named = tuple(topics)
    missing = sorted(set(named) - ClusterClient(connection).partitions(named).keys())
    if missing:
        are = f"topic {missing[0]}" if len(missing) == 1 else f"topics {', '.join(missing)}"
        raise JobError(f"there is no {are} on {connection.bootstrap_servers}: create it first, or check the name")
