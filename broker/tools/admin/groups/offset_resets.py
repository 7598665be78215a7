"""`odradek groups --reset-offsets`: finds the new offsets of groups without members, and commits or exports them.

A file for --from-file has lines `topic,partition,offset`, or `group,topic,partition,offset` for several groups.

Kafka: ConsumerGroupCommand.ConsumerGroupService.resetOffsets, CsvUtils.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.admin.client.coordinators import KeyType, ask_coordinators
from odradek.broker.tools.admin.client.offset_lookups import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_RECORD,
    OffsetLookups,
)
from odradek.broker.tools.admin.client.topic_arguments import partitions_of
from odradek.broker.tools.admin.groups.group_requests import DEAD, EMPTY, committed_offsets, describe_groups
from odradek.broker.tools.admin.groups.reset_times import parse_datetime, parse_duration
from odradek.broker.tools.command.columns import column_lines
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

Offsets = dict[TopicPartition, int]
_WIDTHS: Final = (30, 30, 10, 15)
_DRY: Final = (
    "WARN: No action will be performed as the --execute option is missing. You should add the --dry-run option "
    "explicitly if you are scripting this command."
)


async def reset(client: AdminClient, out: Output, options: argparse.Namespace, groups: Sequence[str]) -> None:
    """Print, and with --execute commit, the new offsets. Raises: CommandFailed."""
    if not options.dry_run and not options.execute:
        out.warn(_DRY)
    plan = None if options.from_file is None else parse_plan(_text(options.from_file), options.group)
    described = await describe_groups(client, groups)
    resetting = _Reset(client, out, options, plan)
    found: dict[str, Offsets] = {}
    failures = []
    for name in groups:
        state = described[name].group.group_state
        if state in (EMPTY, DEAD):
            found[name] = await resetting.new_offsets(name)
            if options.execute:
                await commit(client, name, found[name])
        else:
            failures.append(
                f"Assignments can only be reset if the group '{name}' is inactive, but the current state is {state}."
            )
    rows = [(name, *tp, offset) for name in groups if name in found for tp, offset in sorted(found[name].items())]
    facts: list[dict[str, object]] = [
        {"group": name, "topic": topic, "partition": partition, "new_offset": offset}
        for name, topic, partition, offset in rows
    ]
    if options.export:
        out.result(facts, export_lines(rows, is_one_group=len(options.group) == 1))
    else:
        titles = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
        out.table(facts, ["", *column_lines([titles, *rows], _WIDTHS)])
    if failures:
        raise CommandFailed("\n".join(failures))


async def commit(client: AdminClient, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets of a group without members. Raises: CommandFailed."""
    if not offsets:
        return
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for tp, offset in sorted(offsets.items()):
        partition = OffsetCommitRequestPartition(
            partition_index=tp.partition, committed_offset=offset, committed_metadata=""
        )
        by_topic.setdefault(tp.topic, []).append(partition)
    topics = [OffsetCommitRequestTopic(name=name, partitions=found) for name, found in by_topic.items()]
    request = OffsetCommitRequest(group_id=group, topics=topics)

    async def ask(broker_id: int, names: Sequence[str]) -> Mapping[str, _Committed]:
        response = await client.ask_broker(broker_id, request, OffsetCommitResponse)
        errors = {
            TopicPartition(topic.name, result.partition_index): result.error_code
            for topic in response.topics
            for result in topic.partitions
        }
        # An error of the coordinator is that of all partitions.
        return {group: _Committed(next(iter(errors.values()), ErrorCode.NONE), errors)}

    committed = (await ask_coordinators(client, KeyType.GROUP, [group], ask))[group]
    for tp, offset in offsets.items():
        if tp not in committed.errors:
            raise CommandFailed(f"Committing offset {offset} of group '{group}' in {tp}: the answer does not name it")
    for tp, error in committed.errors.items():
        check(error, None, f"Committing offset {offsets[tp]} of group '{group}' in {tp}")


class _Committed(NamedTuple):
    """The first error of a commit, and that of each partition."""

    error_code: int
    errors: Mapping[TopicPartition, int]


class _Reset:
    """Finds new offsets as the options say."""

    def __init__(
        self, client: AdminClient, out: Output, options: argparse.Namespace, plan: Mapping[str, Offsets] | None
    ) -> None:
        self._client = client
        self._out = out
        self._options = options
        self._plan = plan
        self._lookups = OffsetLookups(client)

    async def new_offsets(self, group: str) -> Offsets:
        """Raises: CommandFailed."""
        options = self._options
        if self._plan is not None:
            if group not in self._plan:
                raise CommandFailed(f"No reset plan for group {group} found")
            return await self._in_range(self._plan[group])
        committed = (await committed_offsets(self._client, [group]))[group]
        partitions = sorted(committed) if options.all_topics else await partitions_of(self._client, options.topic)
        if options.to_earliest:
            return await self._lookups.at(partitions, EARLIEST_TIMESTAMP)
        if options.to_latest:
            return await self._lookups.at(partitions, LATEST_TIMESTAMP)
        if options.to_current:
            without = [tp for tp in partitions if tp not in committed]
            ends = await self._lookups.at(without, LATEST_TIMESTAMP)
            return {tp: committed[tp] if tp in committed else ends[tp] for tp in partitions}
        if options.to_offset is not None:
            return await self._in_range(dict.fromkeys(partitions, options.to_offset))
        if options.shift_by is not None:
            for tp in partitions:
                if tp not in committed:
                    raise CommandFailed(
                        f"Cannot shift offset for partition {tp} since there is no current committed offset"
                    )
            return await self._in_range({tp: committed[tp] + options.shift_by for tp in partitions})
        if options.to_datetime is not None:
            return await self._since(partitions, parse_datetime(options.to_datetime))
        since_ms = self._client.clock.time_ms() - parse_duration(options.by_duration)
        return await self._since(partitions, since_ms)

    async def _since(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> Offsets:
        """The first offsets since a time; the end where there is none."""
        found = await self._lookups.at(partitions, timestamp_ms)
        after = [tp for tp, offset in found.items() if offset == NO_RECORD]
        for tp in after:
            self._out.warn(
                f"\nWarn: Partition {tp.partition} from topic {tp.topic} is empty. Falling back to latest known offset."
            )
        return found | await self._lookups.at(after, LATEST_TIMESTAMP)

    async def _in_range(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """The wanted offsets; those outside of their log become its first or its end."""
        starts = await self._lookups.at(wanted, EARLIEST_TIMESTAMP)
        ends = await self._lookups.at(wanted, LATEST_TIMESTAMP)
        offsets = {}
        for tp, offset in wanted.items():
            offsets[tp] = min(max(offset, starts[tp]), ends[tp])
            if offset != offsets[tp]:
                side = "lower than earliest" if offset < offsets[tp] else "higher than latest"
                self._out.warn(
                    f"WARN: New offset ({offset}) is {side} offset for topic partition {tp}. "
                    f"Value will be set to {offsets[tp]}"
                )
        return offsets


# The plan as CSV


def export_lines(rows: Iterable[tuple[str, str, int, int]], *, is_one_group: bool) -> list[str]:
    """The rows (group, topic, partition, offset) as CSV; the group is left out if there is only one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(row[1:] if is_one_group else row for row in rows)
    return text.getvalue().splitlines()


def parse_plan(text: str, groups: Sequence[str]) -> dict[str, Offsets]:
    """The offsets of each group. `groups`: those of the command line. Raises: CommandFailed."""
    plan: dict[str, Offsets] = {}
    try:
        for row in csv.reader(io.StringIO(text), strict=True):
            if not row:
                continue
            if len(row) == 3 and len(groups) == 1:
                row = [groups[0], *row]
            group, topic, partition, offset = row
            plan.setdefault(group, {})[TopicPartition(topic.strip(), int(partition))] = int(offset)
    except (ValueError, csv.Error) as error:
        raise CommandFailed(
            "the reset plan must have lines topic,partition,offset for one --group, "
            f"or group,topic,partition,offset: {error}"
        ) from error
    return plan


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeError) as error:
        raise CommandFailed(f"cannot read the reset plan: {error}") from error
