"""Requests for the states of the producers of partitions.

Kafka: KafkaAdminClient.describeProducers, DescribeProducersHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.partition_leaders import PartitionLeaders, by_topic
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

NO_TRANSACTION: Final = -1
"""The start offset of a producer without an open transaction."""

Producers = dict[TopicPartition, Sequence[ProducerState]]


async def describe_producers(
    client: AdminClient, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> Producers:
    """The producers of each partition, from its leader or from one broker. Raises: CommandFailed."""

    async def ask(broker: int, wanted: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionResponse]:
        topics = [TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(wanted).items()]
        response = await client.ask_broker(broker, DescribeProducersRequest(topics=topics), DescribeProducersResponse)
        return {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }

    wanted = list(partitions)
    if not wanted:
        return {}
    if broker_id is None:
        found: Mapping[TopicPartition, PartitionResponse] = await PartitionLeaders(client).ask(
            wanted, ask, lambda error: PartitionResponse(error_code=error)
        )
    else:
        found = await ask(broker_id, wanted)
    where = "leader" if broker_id is None else f"broker {broker_id}"
    for tp, result in found.items():
        if result.error_code != ErrorCode.NONE:
            why = error_text(result.error_code, result.error_message)
            raise CommandFailed(f"Failed to describe producers for partition {tp} on {where}: {why}")
    return {tp: found[tp].active_producers for tp in wanted}
