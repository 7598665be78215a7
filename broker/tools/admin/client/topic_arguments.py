"""Topics and partitions on the command line: `t`, or `t:0,1`.

Kafka: ConsumerGroupCommand.ConsumerGroupService.parseTopicPartitionsToReset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.protocol.java_split import java_split
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient


async def partitions_of(client: AdminClient, arguments: Iterable[str]) -> list[TopicPartition]:
    """The partitions that the arguments name, in order. Raises: CommandFailed for a topic that does not exist."""
    found: set[TopicPartition] = set()
    whole = []
    for argument in arguments:
        if ":" in argument:
            found.update(parse_partitions(argument))
        else:
            whole.append(argument)
    if whole:
        for topic in (await client.metadata(dict.fromkeys(whole))).topics:
            check(topic.error_code, None, f"Topic '{topic.name}'")
            found.update(TopicPartition(topic.name or "", partition.partition_index) for partition in topic.partitions)
    return sorted(found)


def parse_partitions(argument: str) -> list[TopicPartition]:
    """`t:0,1`. Raises: CommandFailed."""
    topic, _, partitions = argument.partition(":")
    if not topic or not partitions or ":" in partitions:
        raise CommandFailed(f"Invalid topic arg '{argument}', expected topic name and partitions")
    numbers = java_split(partitions)
    for partition in numbers:
        if not partition.isascii() or not partition.isdecimal():
            raise CommandFailed(f"Invalid partition '{partition}' specified in topic arg '{argument}'")
    return [TopicPartition(topic, int(partition)) for partition in numbers]
