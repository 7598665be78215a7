"""`odradek groups`: lists, describes and deletes consumer groups, resets and deletes their offsets.

Options and lines are those of kafka-consumer-groups. Differences: groups are sorted by name; each partition of a reset
or of a deletion of offsets has a line of its own; the exit status is 1 after an error.

Kafka: ConsumerGroupCommand, ConsumerGroupCommandOptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.groups.group_listing import list_groups
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser
from odradek.broker.tools.command.columns import column_lines, widest
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.java_split import java_split

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.messages.list_groups import ListedGroup

TIMEOUT_MS: Final = 5000
STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES: Final = ("Consumer", "Classic", "Share")
_EXAMPLES: Final = """\
  odradek groups --list --state
  odradek groups --describe --group g                       lag of each partition
  odradek groups --describe --all-groups --members --verbose
  odradek groups --reset-offsets --group g --topic t:0,1 --to-earliest --execute
  odradek groups --reset-offsets --group g --all-topics --by-duration P1D --export > plan.csv
"""
SCENARIOS: Final = {
    "to_offset": "--to-offset",
    "shift_by": "--shift-by",
    "to_datetime": "--to-datetime",
    "by_duration": "--by-duration",
    "to_earliest": "--to-earliest",
    "to_latest": "--to-latest",
    "to_current": "--to-current",
    "from_file": "--from-file",
}


def main(arguments: Sequence[str]) -> int:
    """Run one action on groups. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    problem = _misuse(options)
    if problem:
        command.error(problem)
    return run(options, _work)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "groups", "List, describe, reset and delete consumer groups, as kafka-consumer-groups does.", examples=_EXAMPLES
    )
    add_actions(
        parser,
        {
            "list": "print the names of the groups",
            "describe": "print offsets and lag, members, or state",
            "reset-offsets": "set the offsets of groups without members",
            "delete": "delete groups without members",
            "delete-offsets": "delete offsets of a group, for topics that it does not read",
        },
    )
    parser.add_argument("--group", action="append", default=[], help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help="all groups of the cluster")
    parser.add_argument("--timeout", type=int, default=TIMEOUT_MS, metavar="MS", help="for each answer; default 5000")
    listing = parser.add_argument_group("--list")
    listing.add_argument(
        "--state", nargs="?", const="", metavar="STATE,...", help="print states, of groups in these states"
    )
    listing.add_argument(
        "--type", nargs="?", const="", metavar="TYPE,...", help="print types, of groups of these types"
    )
    describing = parser.add_argument_group("--describe")
    describing.add_argument("--offsets", action="store_true", help="offsets and lag of each partition; the default")
    describing.add_argument("--members", action="store_true", help="the members")
    describing.add_argument("--verbose", action="store_true", help="with --members: their partitions")
    _add_reset_options(parser.add_argument_group("--reset-offsets"))
    add_client_options(parser)
    return parser


def _add_reset_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--topic", action="append", default=[], metavar="T[:0,1]", help="a topic, or some partitions; may be repeated"
    )
    group.add_argument("--all-topics", action="store_true", help="all partitions with a committed offset")
    group.add_argument("--dry-run", action="store_true", help="only print the new offsets; the default")
    group.add_argument("--execute", action="store_true", help="set the new offsets")
    group.add_argument("--export", action="store_true", help="print the new offsets as CSV, for --from-file")
    to = group.add_mutually_exclusive_group()
    to.add_argument("--to-earliest", action="store_true", help="to the first offset")
    to.add_argument("--to-latest", action="store_true", help="to the end")
    to.add_argument("--to-current", action="store_true", help="to the committed offset, else to the end")
    to.add_argument("--to-offset", type=int, metavar="N")
    to.add_argument("--shift-by", type=int, metavar="N", help="by so many offsets, back if negative")
    to.add_argument("--to-datetime", metavar="TIME", help="to the first record since YYYY-MM-DDTHH:mm:SS.sss")
    to.add_argument("--by-duration", metavar="PnDTnHnMnS", help="to the first record within so much time before now")
    to.add_argument("--from-file", metavar="CSV", help="to the offsets in a file that --export has printed")


def _misuse(options: argparse.Namespace) -> str | None:
    action = options.action
    for name, actions in _ACTIONS_WITH.items():
        if getattr(options, name) not in (None, False) and action not in actions:
            return f"--{name.replace('_', '-')} does not go with --{action}"
    if options.group and options.all_groups:
        return "--group does not go with --all-groups"
    if action in ("describe", "delete", "reset-offsets") and not (options.group or options.all_groups):
        return f"--{action} needs --group or --all-groups"
    if action == "describe" and sum((options.members, options.offsets, options.state is not None)) > 1:
        return "--describe takes one of --members, --offsets, --state"
    if action == "describe" and options.state:
        return "--describe does not take a value for --state"
    if action == "delete" and options.topic:
        return "The consumer does not support topic-specific offset deletion from a consumer group."
    if action == "delete-offsets" and (len(options.group) != 1 or not options.topic):
        return "--delete-offsets needs one --group, and --topic"
    if action == "reset-offsets":
        if options.dry_run and options.execute:
            return "--reset-offsets takes one of --execute and --dry-run"
        if all(getattr(options, name) in (None, False) for name in SCENARIOS):
            return f"--reset-offsets needs one of {', '.join(SCENARIOS.values())}"
        if not (options.topic or options.all_topics or options.from_file is not None):
            return "One of the reset scopes should be defined: --all-topics, --topic."
    return None


_ACTIONS_WITH: Final = {
    "all_groups": ("describe", "delete", "reset-offsets"),
    "state": ("describe", "list"),
    "type": ("list",),
    **dict.fromkeys(("members", "offsets", "verbose"), ("describe",)),
    **dict.fromkeys(("all_topics", "dry_run", "execute", "export", *SCENARIOS), ("reset-offsets",)),
}
"""Option -> the actions that accept it."""


async def _work(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    client.config = client.config._replace(api_timeout_ms=options.timeout)
    if options.action == "list":
        await _list(client, out, options)
        return
    groups = list(dict.fromkeys(options.group))
    if options.all_groups:
        groups = [group.group_id for group in await list_groups(client)]
    if options.action == "describe":
        from odradek.broker.tools.admin.groups.group_descriptions import describe

        await describe(client, out, options, groups)
    elif options.action == "reset-offsets":
        from odradek.broker.tools.admin.groups.offset_resets import reset

        await reset(client, out, options, groups)
    else:
        from odradek.broker.tools.admin.groups import group_deletions

        if options.action == "delete":
            await group_deletions.delete(client, out, groups)
        else:
            await group_deletions.delete_offsets(client, out, groups[0], options.topic)


async def _list(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    states = _values(options.state, STATES, "state")
    types = _values(options.type, TYPES, "types")
    groups = await list_groups(client, states, types)
    with_state, with_type = options.state is not None, options.type is not None
    rows = [_listed(group, with_state=with_state, with_type=with_type) for group in groups]
    if not (with_state or with_type):
        out.result(rows, [group.group_id for group in groups])
        return
    header = ["GROUP", *(["TYPE"] if with_type else []), *(["STATE"] if with_state else [])]
    widths = [widest(15, (group.group_id for group in groups)) + 10, *([20] * (len(header) - 1))]
    out.table(rows, column_lines([header, *([*row.values()] for row in rows)], widths))


def _listed(group: ListedGroup, *, with_state: bool, with_type: bool) -> dict[str, object]:
    row: dict[str, object] = {"group": group.group_id}
    if with_type:
        row["type"] = group.group_type.capitalize() or "Unknown"
    if with_state:
        row["state"] = group.group_state or "Unknown"
    return row


def _values(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """The values of a list on the command line, in Kafka's spelling. Raises: CommandFailed."""
    if not text:
        return []
    spelled: Mapping[str, str] = {value.lower(): value for value in known}
    wanted = [value.strip().lower() for value in java_split(text)]
    if any(value not in spelled for value in wanted):
        raise CommandFailed(f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}")
    return [spelled[value] for value in wanted]
