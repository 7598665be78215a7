"""`odradek elect-leaders`: preferred or unclean elections, with the options and lines of kafka-leader-election.

Kafka: LeaderElectionCommand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.client.partition_leaders import by_topic
from odradek.broker.tools.command.arguments import add_client_options, command_parser, file_text
from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

ELECTION_TYPES: Final = {"preferred": 0, "unclean": 1}
TIMEOUT_MS: Final = 30_000


def main(arguments: Sequence[str]) -> int:
    """Elect leaders. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if (options.topic is None) != (options.partition is None):
        command.error("--topic and --partition go together")
    return run(options, _elect)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("elect-leaders", "Elect leaders. Exit status 1 if an election fails.")
    parser.add_argument("--election-type", required=True, type=str.lower, choices=ELECTION_TYPES)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", help="with --partition: only this partition")
    which.add_argument(
        "--path-to-json-file", type=file_text, metavar="F", help='{"partitions": [{"topic": "t", "partition": 1}]}'
    )
    which.add_argument("--all-topic-partitions", action="store_true")
    parser.add_argument("--partition", type=int, metavar="N")
    add_client_options(parser)
    return parser


async def _elect(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    asked: list[TopicPartition] | None = None
    if options.topic is not None:
        asked = [TopicPartition(options.topic, options.partition)]
    elif options.path_to_json_file is not None:
        from odradek.broker.tools.admin.reassignment.reassignment_plan import parse_partitions  # loads JSON

        asked = parse_partitions(options.path_to_json_file)
    election_type = options.election_type
    request = ElectLeadersRequest(
        election_type=ELECTION_TYPES[election_type], topic_partitions=_by_topic(asked), timeout_ms=TIMEOUT_MS
    )
    response = await client.ask_controller(request, ElectLeadersResponse)
    check(response.error_code, None, "Leader election")
    lines, failed = report(response, election_type.upper())
    out.result(_rows(response), lines)
    if failed:
        raise CommandFailed(f"{failed} replica(s) could not be elected")


def report(response: ElectLeadersResponse, election_type: str) -> tuple[list[str], int]:
    """The result of each partition, and the number of failed elections."""
    elected, not_needed, errors = [], [], []
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            topic_partition = TopicPartition(topic.topic, result.partition_id)
            if result.error_code == ErrorCode.NONE:
                elected.append(str(topic_partition))
            elif result.error_code == ErrorCode.ELECTION_NOT_NEEDED:
                not_needed.append(str(topic_partition))
            else:
                reason = error_text(result.error_code, result.error_message)
                errors.append(
                    f"Error completing leader election ({election_type}) for partition: {topic_partition}: {reason}"
                )
    lines = []
    if elected:
        lines.append(f"Successfully completed leader election ({election_type}) for partitions {', '.join(elected)}")
    if not_needed:
        lines.append(f"Valid replica already elected for partitions {', '.join(not_needed)}")
    return lines + errors, len(errors)


def _rows(response: ElectLeadersResponse) -> Iterator[dict[str, object]]:
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            yield {
                "topic": topic.topic,
                "partition": result.partition_id,
                "elected": result.error_code == ErrorCode.NONE,
                "error": ErrorCode.for_code(result.error_code).name,
            }


def _by_topic(partitions: list[TopicPartition] | None) -> list[TopicPartitions] | None:
    if partitions is None:
        return None
    return [TopicPartitions(topic=name, partitions=indexes) for name, indexes in by_topic(partitions).items()]
