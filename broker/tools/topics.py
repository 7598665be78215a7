"""`odradek topics`: list, describe, create and delete topics and add partitions to them.

The options and lines are those of kafka-topics, for the part of them that is here.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin_client import CommandFailed, check, run
from odradek.broker.tools.cluster import describe_partition
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
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.primitives import uuid_to_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.broker.tools.admin_client import AdminClient
    from odradek.protocol.messages.metadata import MetadataResponseTopic

TOPIC_RESOURCE: Final = 2
DEFAULT_CONFIG: Final = 5
BROKER_DEFAULT: Final = -1
TIMEOUT_MS: Final = 30_000
MAX_REPLICATION_FACTOR: Final = 32767

Assignment = list[list[int]]


def main(arguments: Sequence[str]) -> int:
    """Do one thing to topics; the exit status."""
    parser = argparse.ArgumentParser(
        prog="odradek topics", description="List, describe, create, alter and delete topics, as kafka-topics does."
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT,...")
    action = parser.add_mutually_exclusive_group(required=True)
    for name in ("list", "describe", "create", "alter", "delete"):
        action.add_argument(f"--{name}", dest="action", action="store_const", const=name)
    parser.add_argument("--topic", help="a name to create; else a regular expression for names")
    parser.add_argument("--partitions", type=int, metavar="N")
    parser.add_argument("--replication-factor", type=int, metavar="N")
    parser.add_argument("--replica-assignment", type=parse_assignment, metavar="0:1,1:2", help="of each partition")
    parser.add_argument("--config", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--exclude-internal", action="store_true", help="leave out internal topics")
    parser.add_argument("--if-exists", action="store_true", help="no topic is no error")
    parser.add_argument("--if-not-exists", action="store_true", help="a topic that is there already is no error")
    options = parser.parse_args(arguments)
    problem = _misuse(options)
    if problem:
        parser.error(problem)
    work = {"list": _list, "describe": _describe, "create": _create, "alter": _alter, "delete": _delete}
    return run(options.bootstrap_server, lambda client: work[options.action](client, options))


def _misuse(options: argparse.Namespace) -> str | None:
    if options.action in ("create", "alter", "delete") and options.topic is None:
        return f"--{options.action} needs --topic"
    if options.action == "alter" and options.partitions is None:
        return "--alter needs --partitions"
    if options.action == "create" and options.replica_assignment and (options.partitions or options.replication_factor):
        return "--replica-assignment says the partitions and the replication factor"
    if any("=" not in config for config in options.config):
        return "--config takes NAME=VALUE"
    if options.partitions is not None and options.partitions < 1:
        return "The partitions must be greater than 0"
    if options.replication_factor is not None and not 1 <= options.replication_factor <= MAX_REPLICATION_FACTOR:
        return f"The replication factor must be between 1 and {MAX_REPLICATION_FACTOR} inclusive"
    return None


def parse_assignment(text: str) -> Assignment:
    """`0:1,1:2`: the replicas of partition 0, then of partition 1."""
    assignment = [[int(broker_id) for broker_id in replicas.split(":")] for replicas in text.split(",")]
    for partition, replicas in enumerate(assignment):
        if len(set(replicas)) < len(replicas):
            raise argparse.ArgumentTypeError(f"Partition replica lists may not contain duplicate entries: {replicas}")
        if len(replicas) != len(assignment[0]):
            raise argparse.ArgumentTypeError(f"Partition {partition} has different replication factor: {replicas}")
    return assignment


def select(topics: Sequence[MetadataResponseTopic], options: argparse.Namespace) -> list[MetadataResponseTopic]:
    """Those that are meant, by name. A comma separates alternatives, as in kafka-topics."""
    pattern = re.compile(".*" if options.topic is None else options.topic.strip().replace(",", "|"))
    return sorted(
        (
            topic
            for topic in topics
            if pattern.fullmatch(topic.name or "") and not (options.exclude_internal and topic.is_internal)
        ),
        key=lambda topic: topic.name or "",
    )


async def _existing(client: AdminClient, options: argparse.Namespace) -> list[MetadataResponseTopic]:
    found = select((await client.metadata(None)).topics, options)
    if not found and options.topic is not None and not options.if_exists:
        raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return found


async def _list(client: AdminClient, options: argparse.Namespace) -> None:
    for topic in select((await client.metadata(None)).topics, options):
        sys.stdout.write(f"{topic.name}\n")


async def _describe(client: AdminClient, options: argparse.Namespace) -> None:
    topics = await _existing(client, options)
    resources = [DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=t.name or "") for t in topics]
    for resource in resources:
        resource.configuration_keys = None
    configs = await client.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    changed = {
        result.resource_name: {
            config.name: config.value for config in result.configs if config.config_source != DEFAULT_CONFIG
        }
        for result in configs.results
    }
    for topic in topics:
        sys.stdout.writelines(f"{line}\n" for line in describe(topic, changed.get(topic.name or "", {})))


def describe(topic: MetadataResponseTopic, configs: Mapping[str, str | None]) -> list[str]:
    """A line for the topic, and one for each partition."""
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    texts = ",".join(f"{name}={value}" for name, value in configs.items())
    head = (
        f"Topic: {topic.name}\tTopicId: {uuid_to_text(topic.topic_id)}\tPartitionCount: {len(partitions)}\t"
        f"ReplicationFactor: {len(partitions[0].replica_nodes)}\tConfigs: {texts}"
    )
    lines = [describe_partition(topic.name or "", partition) for partition in partitions]
    return [head, *(f"{line}\tElr: N/A\tLastKnownElr: N/A" for line in lines)]


async def _create(client: AdminClient, options: argparse.Namespace) -> None:
    assignment: Assignment = options.replica_assignment or []
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
    sys.stdout.write(f"Created topic {options.topic}.\n")


async def _alter(client: AdminClient, options: argparse.Namespace) -> None:
    topics = []
    for topic in await _existing(client, options):
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


async def _delete(client: AdminClient, options: argparse.Namespace) -> None:
    topics = await _existing(client, options)
    if topics:
        states = [DeleteTopicState(name=topic.name) for topic in topics]
        request = DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS)
        for result in (await client.ask_controller(request, DeleteTopicsResponse)).responses:
            check(result.error_code, result.error_message, f"Error while deleting topic {result.name}")
