"""`odradek delete-records`: deletes the records before an offset, with the options and lines of kafka-delete-records.

Kafka: DeleteRecordsCommand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.client.partition_leaders import PartitionLeaders, by_topic
from odradek.broker.tools.command.arguments import add_client_options, command_parser, file_text
from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.controller.znodes.znode_json import BadZnode, int_in, json_object, list_in, long_in, partition_in
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

VERSION: Final = 1
_EXAMPLES: Final = """\
  odradek delete-records --offset-json-file offsets.json
      with {"partitions": [{"topic": "t", "partition": 0, "offset": 100}], "version": 1}; offset -1 is the end
"""


def main(arguments: Sequence[str]) -> int:
    """Delete records. Returns the exit status."""
    return run(parser().parse_args(arguments), _delete)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "delete-records", "Delete the records before an offset, as kafka-delete-records does.", examples=_EXAMPLES
    )
    parser.add_argument("--offset-json-file", required=True, type=file_text, metavar="F", help="the new first offsets")
    add_client_options(parser)
    return parser


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Raises: CommandFailed if the text is no list of partitions with offsets."""
    offsets: dict[TopicPartition, int] = {}
    repeated: list[TopicPartition] = []
    try:
        parsed = json_object(text.encode(), "the file")
        version = int_in(parsed, "version", VERSION)
        if version != VERSION:
            raise CommandFailed(f"Not supported version field value {version}")
        if "partitions" not in parsed:
            raise CommandFailed("Missing partitions field")
        for entry in list_in(parsed, "partitions"):
            tp = partition_in(entry)
            assert isinstance(entry, dict)
            if tp in offsets:
                repeated.append(tp)
            offsets[tp] = long_in(entry, "offset")
    except BadZnode as error:
        raise CommandFailed(f"not a list of partitions and offsets: {error}") from error
    if repeated:
        raise CommandFailed(f"Offset json file contains duplicate topic partitions: {','.join(map(str, repeated))}")
    return offsets


async def _delete(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    offsets = parse_offsets(options.offset_json_file)

    async def ask(
        leader: int, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, DeleteRecordsPartitionResult]:
        topics = [
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offsets[TopicPartition(topic, index)])
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(partitions).items()
        ]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=client.config.request_timeout_ms)
        response = await client.ask_broker(leader, request, DeleteRecordsResponse)
        return {
            TopicPartition(topic.name, result.partition_index): result
            for topic in response.topics
            for result in topic.partitions
        }

    out.note("Executing records delete operation")
    results = await PartitionLeaders(client).ask(
        sorted(offsets), ask, lambda error: DeleteRecordsPartitionResult(error_code=error)
    )
    out.note("Records delete operation completed:")
    rows, lines, failed = [], [], 0
    for tp, result in results.items():
        is_done = result.error_code == ErrorCode.NONE
        outcome = f"low_watermark: {result.low_watermark}" if is_done else f"error: {error_text(result.error_code)}"
        lines.append(f"partition: {tp}\t{outcome}")
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "low_watermark": result.low_watermark if is_done else None,
                "error": ErrorCode.for_code(result.error_code).name,
            }
        )
        failed += not is_done
    out.result(rows, lines)
    if failed:
        raise CommandFailed(f"the records of {failed} partition(s) were not deleted")
