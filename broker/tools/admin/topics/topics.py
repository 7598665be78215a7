"""`odradek topics`: list, describe, create and delete topics and add partitions to them.

Options and lines are those of kafka-topics, without the options of its client. Topics are sorted by name.

Kafka: TopicCommand.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.topics.topic_selection import OVERRIDES, REPORTS, select
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser
from odradek.broker.tools.command.comma_list import integers
from odradek.protocol.codec.primitives import ZERO_UUID, uuid_from_text
from odradek.protocol.java_split import java_split

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

MAX_REPLICATION_FACTOR: Final = 32767

Assignment = list[list[int]]


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


def main(arguments: Sequence[str]) -> int:
    """Run one action on topics. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    problem = _misuse(options)
    if problem:
        command.error(problem)
    return run(options, _work(options.action))


def _work(action: str) -> Callable[[AdminClient, Output, argparse.Namespace], Coroutine[object, object, None]]:
    """What an action does. The modules of the others are not loaded: they take a third of the time of `--list`."""
    if action == "list":
        return _list
    if action == "describe":
        from odradek.broker.tools.admin.topics.topic_reports import describe_topics

        return describe_topics
    from odradek.broker.tools.admin.topics import topic_changes

    work = {"create": topic_changes.create, "alter": topic_changes.alter, "delete": topic_changes.delete}
    return work[action]


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
    if options.topics_with_overrides and any(getattr(options, report) for report in REPORTS if report != OVERRIDES):
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
    assignment = [integers(replicas, ":") for replicas in java_split(text)]
    for partition, replicas in enumerate(assignment):
        if len(set(replicas)) < len(replicas):
            raise argparse.ArgumentTypeError(f"Partition replica lists may not contain duplicate entries: {replicas}")
        if len(replicas) != len(assignment[0]):
            raise argparse.ArgumentTypeError(f"Partition {partition} has different replication factor: {replicas}")
    return assignment


async def _list(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    names = [topic.name or "" for topic in select((await client.metadata(None)).topics, options)]
    out.result(({"topic": name} for name in names), names)
