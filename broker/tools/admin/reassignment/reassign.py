"""`odradek reassign`: proposes, starts, watches and cancels moves of replicas between brokers and directories.

Options, files and lines are those of kafka-reassign-partitions. Difference: --cancel also cancels a reassignment that
only adds replicas, which Apache Kafka 3.9's tool overlooks.

Kafka: ReassignPartitionsCommand.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.cluster.cluster import ids_text
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser, file_text

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

UNTHROTTLED: Final = -1
MOVES_TIMEOUT_MS: Final = 10_000


def main(arguments: Sequence[str]) -> int:
    """Run one of the five actions. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    needed = {"generate": ("topics_to_move_json_file", "broker_list"), "list": ()}
    for name in needed.get(options.action, ("reassignment_json_file",)):
        if getattr(options, name) is None:
            command.error(f"--{options.action} needs --{name.replace('_', '-')}")
    return run(options, _work(options.action))


def _work(action: str) -> Callable[[AdminClient, Output, argparse.Namespace], Coroutine[object, object, None]]:
    """What an action does. The modules of plans are not loaded for `--list`: they take a third of its time."""
    if action == "list":
        return _list
    from odradek.broker.tools.admin.reassignment import plan_actions

    work = {
        "generate": plan_actions.generate,
        "execute": plan_actions.execute,
        "verify": plan_actions.verify,
        "cancel": plan_actions.cancel,
    }
    return work[action]


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("reassign", "Move replicas between brokers, as kafka-reassign-partitions does.")
    add_actions(
        parser,
        {
            "generate": "propose a plan",
            "execute": "start the moves of a plan",
            "verify": "print how far a plan is, and remove the throttles when it is done",
            "cancel": "undo the moves of a plan that have not ended",
            "list": "print the ongoing reassignments",
        },
    )
    parser.add_argument(
        "--reassignment-json-file", type=file_text, metavar="F", help="the replicas that each partition shall have"
    )
    parser.add_argument(
        "--topics-to-move-json-file", type=file_text, metavar="F", help='{"version": 1, "topics": [{"topic": "t"}]}'
    )
    parser.add_argument("--broker-list", metavar="1,2,3", help="the brokers that shall have the topics")
    parser.add_argument("--disable-rack-aware", action="store_true")
    parser.add_argument("--throttle", type=int, default=UNTHROTTLED, metavar="BYTES/S")
    parser.add_argument("--replica-alter-log-dirs-throttle", type=int, default=UNTHROTTLED, metavar="BYTES/S")
    parser.add_argument(
        "--timeout", type=int, default=MOVES_TIMEOUT_MS, metavar="MS", help="time to start moves of directories"
    )
    parser.add_argument(
        "--additional", action="store_true", help="add to ongoing reassignments, or change their throttle"
    )
    parser.add_argument("--preserve-throttles", action="store_true")
    add_client_options(parser)
    return parser


async def _list(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    ongoing = await client.reassignments()
    out.note("Current partition reassignments:" if ongoing else "No partition reassignments found.")
    rows, lines = [], []
    for tp, found in sorted(ongoing.items()):
        adding = f" adding: {ids_text(found.adding_replicas)}." if found.adding_replicas else ""
        removing = f" removing: {ids_text(found.removing_replicas)}." if found.removing_replicas else ""
        lines.append(f"{tp}: replicas: {ids_text(found.replicas)}.{adding}{removing}")
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": found.replicas,
                "adding": found.adding_replicas,
                "removing": found.removing_replicas,
            }
        )
    out.table(rows, lines)
