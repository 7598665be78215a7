"""`odradek log-dirs`: prints the log directories of brokers, with the options and JSON of kafka-log-dirs.

On a terminal the replicas are a table.

Kafka: LogDirsCommand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.command.arguments import add_client_options, command_parser
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

EXCEPTIONS: Final = "org.apache.kafka.common.errors."
VERSION: Final = 1
_EXAMPLES: Final = """\
  odradek log-dirs --describe
  odradek log-dirs --describe --topic-list t,u --broker-list 0,1
"""


def main(arguments: Sequence[str]) -> int:
    """Print log directories. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    try:
        options.broker_list = [int(broker_id) for broker_id in options.broker_list.split(",") if broker_id]
    except ValueError:
        command.error(f"--broker-list takes numbers: {options.broker_list}")
    return run(options, _describe)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "log-dirs", "Print the log directories of brokers, as kafka-log-dirs does.", examples=_EXAMPLES
    )
    parser.add_argument("--describe", action="store_true", required=True)
    parser.add_argument("--topic-list", default="", metavar="T,...", help="only these topics")
    parser.add_argument("--broker-list", default="", metavar="0,...", help="only these brokers")
    add_client_options(parser)
    return parser


async def _describe(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    alive = await client.broker_ids()
    wanted = sorted(set(options.broker_list)) or alive
    if missing := [broker_id for broker_id in wanted if broker_id not in alive]:
        raise CommandFailed(
            f"ERROR: The given brokers do not exist from --broker-list: {_joined(missing)}. "
            f"Current existent brokers: {_joined(alive)}"
        )
    if not out.is_json:
        out.note("Querying brokers for log directories information")
    topics = await _topics(client, [topic for topic in options.topic_list.split(",") if topic])
    found = {}
    for broker_id in wanted:
        response = await client.ask_broker(broker_id, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)
        check(response.error_code, None, f"Log directories of broker {broker_id}")
        found[broker_id] = response.results
    if not out.is_json:
        out.note(f"Received log directory information from brokers {_joined(wanted)}")
    if out.is_table:
        for broker_id, results in found.items():
            out.table(_rows(broker_id, results), ())
    else:
        _print_json(out, found)


async def _topics(client: AdminClient, names: Sequence[str]) -> list[DescribableLogDirTopic] | None:
    """The topics with their partitions, which the request must name; None for all."""
    if not names:
        return None
    return [
        DescribableLogDirTopic(
            topic=topic.name or "", partitions=[partition.partition_index for partition in topic.partitions]
        )
        for topic in (await client.metadata(names)).topics
        if topic.error_code == ErrorCode.NONE
    ]


def _print_json(out: Output, found: dict[int, list[DescribeLogDirsResult]]) -> None:
    import json

    value: dict[str, object] = {
        "version": VERSION,
        "brokers": [
            {"broker": broker_id, "logDirs": [_log_dir(result) for result in results]}
            for broker_id, results in found.items()
        ],
    }
    out.document(value, [json.dumps(value, separators=(",", ":"), ensure_ascii=False)])


def _log_dir(result: DescribeLogDirsResult) -> dict[str, object]:
    return {
        "partitions": [
            {
                "partition": str(TopicPartition(topic.name, partition.partition_index)),
                "size": partition.partition_size,
                "offsetLag": partition.offset_lag,
                "isFuture": partition.is_future_key,
            }
            for topic in result.topics
            for partition in topic.partitions
        ],
        "error": None if result.error_code == ErrorCode.NONE else _exception(result.error_code),
        "logDir": result.log_dir,
    }


def _exception(code: int) -> str:
    """The class that Kafka's tool names: that of KAFKA_STORAGE_ERROR is KafkaStorageException."""
    words = ErrorCode.for_code(code).name.removesuffix("_ERROR").split("_")
    return f"{EXCEPTIONS}{''.join(word.capitalize() for word in words)}Exception"


def _rows(broker_id: int, results: Sequence[DescribeLogDirsResult]) -> Iterator[dict[str, object]]:
    for result in results:
        for topic in result.topics:
            for partition in topic.partitions:
                yield {
                    "broker": broker_id,
                    "log_dir": result.log_dir,
                    "topic": topic.name,
                    "partition": partition.partition_index,
                    "size": partition.partition_size,
                    "offset_lag": partition.offset_lag,
                    "is_future": partition.is_future_key,
                }


def _joined(broker_ids: Sequence[int]) -> str:
    return ",".join(map(str, broker_ids))
