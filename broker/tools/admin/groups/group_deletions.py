"""Deletes groups, and offsets of a group.

Kafka: ConsumerGroupCommand.ConsumerGroupService.deleteGroups, ConsumerGroupCommand.ConsumerGroupService.deleteOffsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.coordinators import KeyType, ask_coordinators
from odradek.broker.tools.admin.client.topic_arguments import partitions_of
from odradek.broker.tools.command.columns import column_lines
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

_WIDTHS: Final = (30, 15, 15)


async def delete(client: AdminClient, out: Output, groups: Sequence[str]) -> None:
    """Delete groups. Raises: CommandFailed if one cannot be deleted."""

    async def ask(broker_id: int, names: Sequence[str]) -> Mapping[str, DeletableGroupResult]:
        request = DeleteGroupsRequest(groups_names=list(names))
        response = await client.ask_broker(broker_id, request, DeleteGroupsResponse)
        return {result.group_id: result for result in response.results}

    results = await ask_coordinators(client, KeyType.GROUP, groups, ask)
    deleted = [name for name in groups if results[name].error_code == ErrorCode.NONE]
    failed = [name for name in groups if results[name].error_code != ErrorCode.NONE]
    rows = [{"group": name, "error": ErrorCode.for_code(results[name].error_code).name} for name in groups]
    if not failed:
        out.result(rows, [f"Deletion of requested consumer groups ('{', '.join(deleted)}') was successful."])
        return
    names = ", ".join(f"'{name}'" for name in deleted)
    out.result(rows, [f"These consumer groups were deleted successfully: {names}"] if deleted else ())
    why = [f"* Group '{name}' could not be deleted due to: {error_text(results[name].error_code)}" for name in failed]
    raise CommandFailed("\n".join(["Deletion of some consumer groups failed:", *why]))


async def delete_offsets(client: AdminClient, out: Output, group: str, topics: Sequence[str]) -> None:
    """Delete the offsets of a group in topics or partitions. Raises: CommandFailed if one is not deleted."""
    partitions = await partitions_of(client, topics)
    request = OffsetDeleteRequest(group_id=group)
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(OffsetDeleteRequestPartition(partition_index=tp.partition))
    request.topics = [OffsetDeleteRequestTopic(name=name, partitions=found) for name, found in by_topic.items()]

    async def ask(broker_id: int, names: Sequence[str]) -> Mapping[str, OffsetDeleteResponse]:
        return {group: await client.ask_broker(broker_id, request, OffsetDeleteResponse)}

    response = (await ask_coordinators(client, KeyType.GROUP, [group], ask))[group]
    if response.error_code != ErrorCode.NONE:
        raise CommandFailed(_refusal(response.error_code, group))
    rows: list[dict[str, object]] = [
        {"topic": topic.name, "partition": found.partition_index, "error": ErrorCode.for_code(found.error_code).name}
        for topic in response.topics
        for found in topic.partitions
    ]
    failed = [row for row in rows if row["error"] != ErrorCode.NONE.name]
    lines = ["", *column_lines([("TOPIC", "PARTITION", "STATUS"), *map(_cells, rows)], _WIDTHS)]
    if not failed:
        lines.insert(0, f"Request succeed for deleting offsets with topic {', '.join(topics)} group {group}")
    out.result(rows, lines)
    if failed:
        raise CommandFailed("Encounter some partition level error, see the details")


def _cells(row: Mapping[str, object]) -> Sequence[object]:
    error = ErrorCode[str(row["error"])]
    status = "Successful" if error == ErrorCode.NONE else f"Error: {error_text(error)}"
    return row["topic"], row["partition"], status


def _refusal(code: int, group: str) -> str:
    if code == ErrorCode.INVALID_GROUP_ID:
        return f"'{group}' is not valid."
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"'{group}' does not exist."
    if code == ErrorCode.NON_EMPTY_GROUP:
        return f"Deleting offsets of a consumer group '{group}' is forbidden if the group is not empty."
    return error_text(code)
