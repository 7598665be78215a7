"""`odradek topics`: list, describe, create and delete topics and add partitions to them.

Options and lines are those of kafka-topics, without the options of its client. Topics are sorted by name.

Kafka: TopicCommand.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.topics.topic_descriptions import (
    OVERRIDES,
    PARTITION_REPORTS,
    describe,
    facts,
    partition_rows,
)
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.controller.model.assignment import BROKER_DEFAULT
from odradek.controller.model.config_codes import ResourceType
from odradek.controller.model.topic_names import has_collision_chars
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_from_text, uuid_to_text
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
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.messages.metadata import MetadataResponseTopic

TIMEOUT_MS: Final = 30_000
MAX_REPLICATION_FACTOR: Final = 32767

Assignment = list[list[int]]


REPORTS: Final = {
    "under_replicated_partitions": "describe only partitions with too few replicas in sync",
    "unavailable_partitions": "describe only partitions without a leader that is alive",
    "under_min_isr_partitions": "describe only partitions with fewer replicas in sync than min.insync.replicas",
    "at_min_isr_partitions": "describe only partitions with just min.insync.replicas in sync",
    OVERRIDES: "describe only topics whose configs are not the default, and not their partitions",
}

ACTIONS_WITH: Final = {
    **dict.fromkeys(("topic_id", *REPORTS), ("describe",)),
    "if_exists": ("alter", "delete", "describe"),
    "if_not_exists": ("create",),
    "exclude_internal": ("list", "describe"),
    "partitions": ("create", "alter"),
    "replication_factor": ("create",),
    "replica_assignment": ("create", "alter"),
    "config": ("create",),
}
"""Option -> the actions that accept it."""

COLLIDING: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)


def main(arguments: Sequence[str]) -> int:
    """Run one action on topics. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    problem = _misuse(options)
    if problem:
        command.error(problem)
    work = {"list": _list, "describe": _describe, "create": _create, "alter": _alter, "delete": _delete}
    return run(options, work[options.action])


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("topics", "List, describe, create, alter and delete topics, as kafka-topics does.")
    add_actions(
        parser,
        {
            "list": "print the names",
            "describe": "print partitions, replicas and configs",
            "create": "create a topic",
            "alter": "add partitions",
            "delete": "delete topics",
        },
    )
    parser.add_argument("--topic", help="a name to create; else a regular expression for names")
    parser.add_argument("--topic-id", type=_topic_id, metavar="ID", help="describe this topic, whatever its name")
    parser.add_argument("--partitions", type=int, metavar="N")
    parser.add_argument("--replication-factor", type=int, metavar="N")
    parser.add_argument(
        "--replica-assignment", type=parse_assignment, metavar="0:1,1:2", help="the replicas of each partition"
    )
    parser.add_argument("--config", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--exclude-internal", action="store_true", help="leave out internal topics")
    parser.add_argument("--if-exists", action="store_true", help="a missing topic is no error")
    parser.add_argument("--if-not-exists", action="store_true", help="an existing topic is no error")
    for name, what in REPORTS.items():
        parser.add_argument(_option(name), action="store_true", help=what)
    add_client_options(parser)
    return parser


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _topic_id(text: str) -> bytes | None:
    """The id; None for the zero id, which is not searched for."""
    try:
        topic_id = uuid_from_text(text)
        return None if topic_id == ZERO_UUID else topic_id
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _misuse(options: argparse.Namespace) -> str | None:
    for name, actions in ACTIONS_WITH.items():
        if getattr(options, name) not in (None, False, []) and options.action not in actions:
            return f"{_option(name)} does not go with --{options.action}"
    if options.topics_with_overrides and any(getattr(options, report) for report in PARTITION_REPORTS):
        return f"{_option(OVERRIDES)} goes with no other report"
    if options.action in ("create", "alter", "delete") and options.topic is None:
        return f"--{options.action} needs --topic"
    if options.action == "describe" and options.if_exists and options.topic is None and options.topic_id is None:
        return "--describe --if-exists needs --topic or --topic-id"
    if options.action == "alter" and options.partitions is None:
        return "--alter needs --partitions"
    if options.action == "create" and options.replica_assignment and (options.partitions or options.replication_factor):
        return "--replica-assignment already sets the partitions and the replication factor"
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
    """The selected topics. A comma separates alternatives, as in kafka-topics; an id takes precedence over a name."""
    pattern = re.compile(".*" if options.topic is None else options.topic.strip().replace(",", "|"))
    return sorted(
        (
            topic
            for topic in topics
            if (topic.topic_id == options.topic_id if options.topic_id else pattern.fullmatch(topic.name or ""))
            and not (options.exclude_internal and topic.is_internal)
        ),
        key=lambda topic: topic.name or "",
    )


def _existing(topics: Sequence[MetadataResponseTopic], options: argparse.Namespace) -> list[MetadataResponseTopic]:
    found = select(topics, options)
    if not found and not options.if_exists:
        if options.topic_id:
            raise CommandFailed(f"TopicId '{uuid_to_text(options.topic_id)}' does not exist as expected")
        if options.topic is not None:
            raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return found


async def _list(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    names = [topic.name or "" for topic in select((await client.metadata(None)).topics, options)]
    out.result(({"topic": name} for name in names), names)


async def _describe(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    metadata = await client.metadata(None)
    topics = _existing(metadata.topics, options)
    if not topics:
        return
    configs = await _configs(client, [topic.name or "" for topic in topics])
    ongoing = await client.reassignments()
    live_brokers = {node.node_id for node in metadata.brokers}
    reports = [report for report in REPORTS if getattr(options, report)]
    for topic in topics:
        what = (topic, configs[topic.name or ""], ongoing, live_brokers, reports)
        if out.is_table:
            title = next(iter(describe(*what)), "") if not reports else ""
            out.table(partition_rows(*what), (), title=title.replace("\t", "  "))
        else:
            out.result(facts(*what), describe(*what))


async def _configs(client: AdminClient, topics: Sequence[str]) -> dict[str, list[DescribeConfigsResourceResult]]:
    resources = [
        DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=None)
        for topic in topics
    ]
    response = await client.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    for result in response.results:
        check(result.error_code, result.error_message, f"Configs of {result.resource_name}")
    return {result.resource_name: result.configs for result in response.results}


async def _create(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    if has_collision_chars(options.topic):
        out.note(COLLIDING)
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
    created = {"topic": options.topic, "topic_id": uuid_to_text(result.topic_id), "partitions": result.num_partitions}
    out.result([created], [f"Created topic {options.topic}."])


async def _alter(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    topics = []
    for topic in _existing((await client.metadata(None)).topics, options):
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


async def _delete(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    topics = _existing((await client.metadata(None)).topics, options)
    if topics:
        states = [DeleteTopicState(name=topic.name) for topic in topics]
        request = DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS)
        for result in (await client.ask_controller(request, DeleteTopicsResponse)).responses:
            check(result.error_code, result.error_message, f"Error while deleting topic {result.name}")
            out.result([{"topic": result.name}], ())
