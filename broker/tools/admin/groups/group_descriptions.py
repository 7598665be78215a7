"""`odradek groups --describe`: offsets and lag, members, or the state of groups.

Groups are described in batches, so that the memory does not grow with their number.

Kafka: ConsumerGroupCommand.ConsumerGroupService.describeGroups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.offset_lookups import LATEST_TIMESTAMP, OffsetLookups
from odradek.broker.tools.admin.groups.group_requests import (
    DEAD,
    EMPTY,
    DescribedAt,
    assigned_partitions,
    committed_offsets,
    describe_groups,
)
from odradek.broker.tools.command.columns import column_lines, widest
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.admin.client.offset_lookups import FoundOffset
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.topic_partition import TopicPartition

GROUPS_PER_REQUEST: Final = 100
_OFFSET_COLUMNS: Final = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
)
Rows = list[dict[str, object]]


async def describe(client: AdminClient, out: Output, options: argparse.Namespace, groups: Sequence[str]) -> None:
    """Print the groups, by name. Raises: CommandFailed if one of them does not exist."""
    ordered = sorted(groups)
    lookups = OffsetLookups(client)
    missing: list[str] = []
    with out.progress("Describing groups", len(ordered), prints=True) as advance:
        for begin in range(0, len(ordered), GROUPS_PER_REQUEST):
            names = ordered[begin : begin + GROUPS_PER_REQUEST]
            described = await describe_groups(client, names)
            missing += [name for name in names if described[name].group.group_state == DEAD]
            alive = {name: described[name] for name in names if described[name].group.group_state != DEAD}
            if options.state is not None:
                for name, found in alive.items():
                    _print_state(client, out, name, found)
            elif options.members:
                for name, found in alive.items():
                    _print_members(out, name, found, verbose=options.verbose)
            else:
                await _print_offsets(client, out, lookups, alive)
            advance(len(names))
    if missing:
        raise CommandFailed("\n".join(f"Consumer group '{name}' does not exist." for name in missing))


def _note_state(out: Output, name: str, found: DescribedAt) -> None:
    state = found.group.group_state
    if state == EMPTY:
        out.warn(f"\nConsumer group '{name}' has no active members.")
    elif state.endswith("Rebalance"):
        out.warn(f"\nWarning: Consumer group '{name}' is rebalancing.")


# Offsets


async def _print_offsets(
    client: AdminClient, out: Output, lookups: OffsetLookups, groups: Mapping[str, DescribedAt]
) -> None:
    committed = await committed_offsets(client, groups)
    assigned = {
        name: [(member, assigned_partitions(member)) for member in found.group.members]
        for name, found in groups.items()
    }
    wanted = {tp for offsets in committed.values() for tp in offsets}
    wanted.update(tp for members in assigned.values() for _, partitions in members for tp in partitions)
    ends = await lookups.find(dict.fromkeys(wanted, LATEST_TIMESTAMP))
    for name, found in groups.items():
        _note_state(out, name, found)
        rows: Rows = []
        members = sorted(assigned[name], key=lambda pair: -len(pair[1]))
        for member, partitions in members:
            consumer = {
                "consumer_id": member.member_id,
                "host": member.client_host,
                "client_id": member.client_id,
            }
            rows += [_offset_row(name, tp, committed[name].get(tp), ends[tp]) | consumer for tp in partitions]
        held = {tp for _, partitions in members for tp in partitions}
        nobody = {"consumer_id": None, "host": None, "client_id": None}
        rows += [
            _offset_row(name, tp, offset, ends[tp]) | nobody
            for tp, offset in sorted(committed[name].items())
            if tp not in held
        ]
        if rows:
            out.table(rows, _offset_lines(rows))


def _offset_row(name: str, tp: TopicPartition, offset: int | None, end: FoundOffset) -> dict[str, object]:
    log_end = end.offset if end.error_code == ErrorCode.NONE else None
    return {
        "group": name,
        "topic": tp.topic,
        "partition": tp.partition,
        "current_offset": offset,
        "log_end_offset": log_end,
        "lag": None if offset is None or log_end is None else log_end - offset,
    }


def _offset_lines(rows: Rows) -> Iterator[str]:
    widths = {name: widest(15, (row[name] for row in rows)) for name in ("group", "topic", "consumer_id", "host")}
    yield ""
    yield from column_lines(
        [_OFFSET_COLUMNS, *([*row.values()] for row in rows)],
        (widths["group"], widths["topic"], 10, 15, 15, 15, widths["consumer_id"], widths["host"], 0),
    )


# Members


def _print_members(out: Output, name: str, found: DescribedAt, *, verbose: bool) -> None:
    _note_state(out, name, found)
    rows: Rows = []
    with_instances = any(member.group_instance_id for member in found.group.members)
    for member in found.group.members:
        partitions = assigned_partitions(member)
        row: dict[str, object] = {"group": name, "consumer_id": member.member_id}
        if with_instances or out.is_json:
            row["group_instance_id"] = member.group_instance_id
        row |= {"host": member.client_host, "client_id": member.client_id, "partitions": len(partitions)}
        if verbose:
            row["assignment"] = _assignment(partitions)
        rows.append(row)
    if rows:
        out.table(rows, _member_lines(rows))


def _assignment(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


_MEMBER_COLUMNS: Final = {
    "group": ("GROUP", 15),
    "consumer_id": ("CONSUMER-ID", 15),
    "group_instance_id": ("GROUP-INSTANCE-ID", 17),
    "host": ("HOST", 15),
    "client_id": ("CLIENT-ID", 15),
    "partitions": ("#PARTITIONS", 15),
    "assignment": ("ASSIGNMENT", 0),
}
"""Fact -> title and least width."""


def _member_lines(rows: Rows) -> Iterator[str]:
    columns = list(rows[0])
    cells = [[_member_cell(row[name]) for name in columns] for row in rows]
    widths = []
    for index, name in enumerate(columns):
        least = _MEMBER_COLUMNS[name][1]
        widths.append(widest(least, (row[index] for row in cells)) if least else 0)
    yield ""
    yield from column_lines([[_MEMBER_COLUMNS[name][0] for name in columns], *cells], widths)


def _member_cell(value: object) -> object:
    if isinstance(value, dict):
        # As Kafka's tool prints it: without the topics, and both orders are those of texts.
        return ", ".join(sorted(f"({','.join(sorted(map(str, found)))})" for found in value.values())) or None
    return "" if value is None else value


# State


def _print_state(client: AdminClient, out: Output, name: str, found: DescribedAt) -> None:
    _note_state(out, name, found)
    address = client.address(found.broker_id)
    coordinator = f"{address.host}:{address.port}" if address is not None else ""
    row: dict[str, object] = {
        "group": name,
        "coordinator": coordinator,
        "coordinator_id": found.broker_id,
        "assignment_strategy": found.group.protocol_data,
        "state": found.group.group_state,
        "members": len(found.group.members),
    }
    out.table([row], _state_lines(row))


def _state_lines(row: Mapping[str, object]) -> Iterator[str]:
    coordinator = f"{row['coordinator']}  ({row['coordinator_id']})"
    titles = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    cells = (row["group"], coordinator, row["assignment_strategy"], row["state"], row["members"])
    yield ""
    yield from column_lines([titles, cells], (max(25, len(coordinator)), 25, 20, 15, 0))
