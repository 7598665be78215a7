"""`odradek topics --create`, `--alter` and `--delete`.

Kafka: TopicCommand.TopicService.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.topics.topic_selection import existing
from odradek.broker.tools.command.failures import check
from odradek.controller.model.assignment import BROKER_DEFAULT
from odradek.controller.model.topic_names import has_collision_chars
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

TIMEOUT_MS: Final = 30_000

COLLIDING: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)


async def create(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    if has_collision_chars(options.topic):
        out.note(COLLIDING)
    assignment: list[list[int]] = options.replica_assignment or []
    topic = CreatableTopic(
        name=options.topic,
        num_partitions=BROKER_DEFAULT if options.partitions is None else options.partitions,
        replication_factor=BROKER_DEFAULT if options.replication_factor is None else options.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in enumerate(assignment)
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value)
            for name, _, value in (config.partition("=") for config in options.config)
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    (result,) = (await client.ask_controller(request, CreateTopicsResponse)).topics
    if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
        return
    check(result.error_code, result.error_message, "Error while executing topic command")
    created = {"topic": options.topic, "topic_id": uuid_to_text(result.topic_id), "partitions": result.num_partitions}
    out.result([created], [f"Created topic {options.topic}."])


async def alter(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    topics = []
    for topic in existing((await client.metadata(None)).topics, options):
        added = None
        if options.replica_assignment:
            added = [
                CreatePartitionsAssignment(broker_ids=replicas)
                for replicas in options.replica_assignment[len(topic.partitions) :]
            ]
        topics.append(CreatePartitionsTopic(name=topic.name or "", count=options.partitions, assignments=added))
    if topics:
        request = CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
        for result in (await client.ask_controller(request, CreatePartitionsResponse)).results:
            check(result.error_code, result.error_message, f"Error while altering topic {result.name}")
            out.result([{"topic": result.name, "partitions": options.partitions}], ())


async def delete(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    topics = existing((await client.metadata(None)).topics, options)
    if topics:
        states = [DeleteTopicState(name=topic.name) for topic in topics]
        request = DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS)
        for result in (await client.ask_controller(request, DeleteTopicsResponse)).responses:
            check(result.error_code, result.error_message, f"Error while deleting topic {result.name}")
            out.result([{"topic": result.name}], ())
