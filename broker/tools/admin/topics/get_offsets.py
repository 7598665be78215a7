"""`odradek get-offsets`: prints offsets of partitions, with the options and lines of kafka-get-offsets.

Kafka: GetOffsetShell.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.client.offset_lookups import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_RECORD,
    OffsetLookups,
)
from odradek.broker.tools.admin.topics.topic_filters import selects, selects_any_of
from odradek.broker.tools.command.arguments import add_client_options, command_parser
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

NAMED_TIMES: Final = {
    "latest": LATEST_TIMESTAMP,
    "earliest": EARLIEST_TIMESTAMP,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
PARTITIONS_PER_REQUEST: Final = 10_000
_EXAMPLES: Final = """\
  odradek get-offsets --topic t
  odradek get-offsets --topic-partitions 't.*:0-3,u' --time earliest
"""


def main(arguments: Sequence[str]) -> int:
    """Print offsets. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if options.topic_partitions is not None and (options.topic is not None or options.partitions is not None):
        command.error("--topic-partitions cannot be used with --topic or --partitions")
    return run(options, _print_offsets)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "get-offsets", "Print offsets of partitions, as kafka-get-offsets does.", examples=_EXAMPLES
    )
    parser.add_argument("--topic", metavar="REGEX", help="topics; all without this option")
    parser.add_argument("--partitions", metavar="0,1", help="partitions; all without this option")
    parser.add_argument("--topic-partitions", metavar="T:0,T:0-3,T:5-,T", help="topics with their partitions")
    parser.add_argument(
        "--time",
        type=_time,
        default=LATEST_TIMESTAMP,
        metavar="TIME",
        help="milliseconds since 1970, or -1 or latest (the default), -2 or earliest, -3 or max-timestamp, "
        "-4 or earliest-local, -5 or latest-tiered",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true")
    add_client_options(parser)
    return parser


def _time(text: str) -> int:
    try:
        return NAMED_TIMES[text] if text in NAMED_TIMES else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / "
            "-4 or earliest-local / -5 or latest-tiered, or a specified long format timestamp"
        ) from None


async def _print_offsets(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    if options.topic_partitions is not None:
        is_selected = selects_any_of(options.topic_partitions)
    else:
        is_selected = selects(options.topic, options.partitions)
    partitions = [
        tp
        for topic in (await client.metadata(None)).topics
        if not (options.exclude_internal_topics and topic.is_internal)
        for tp in (TopicPartition(topic.name or "", partition.partition_index) for partition in topic.partitions)
        if is_selected(tp)
    ]
    if not partitions:
        raise CommandFailed("Could not match any topic-partitions with the specified filters")
    partitions.sort(key=str)
    lookups = OffsetLookups(client)
    with out.progress("Asking for offsets", len(partitions), prints=True) as advance:
        for begin in range(0, len(partitions), PARTITIONS_PER_REQUEST):
            wanted = partitions[begin : begin + PARTITIONS_PER_REQUEST]
            found = await lookups.find(dict.fromkeys(wanted, options.time))
            for tp, result in found.items():
                if result.error_code != ErrorCode.NONE:
                    why = error_text(result.error_code)
                    out.warn(f"Skip getting offsets for topic-partition {tp} due to error: {why}")
            offsets = [
                (tp, result.offset)
                for tp, result in found.items()
                if result.error_code == ErrorCode.NONE and result.offset != NO_RECORD
            ]
            out.table(
                ({"topic": tp.topic, "partition": tp.partition, "offset": offset} for tp, offset in offsets),
                (f"{tp.topic}:{tp.partition}:{offset}" for tp, offset in offsets),
            )
            advance(len(wanted))
