"""`odradek producers`: prints the idempotent and transactional producers of partitions.

Kafka has no tool for more than one partition; the columns are those of kafka-transactions describe-producers.

Kafka: TransactionsCommand.DescribeProducersCommand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.client.topic_arguments import partitions_of
from odradek.broker.tools.admin.transactions.producer_states import NO_TRANSACTION, describe_producers
from odradek.broker.tools.command.arguments import add_client_options, command_parser
from odradek.broker.tools.command.columns import tabbed_lines
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.messages.describe_producers import ProducerState

HEADERS: Final = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
PARTITIONS_PER_REQUEST: Final = 500
_EXAMPLES: Final = """\
  odradek producers --topic t
  odradek producers --topic t:0,1 --topic u --broker-id 2
  odradek producers --all-topics --open              partitions with an open transaction
"""


def main(arguments: Sequence[str]) -> int:
    """Print producers. Returns the exit status."""
    return run(parser().parse_args(arguments), _print_producers)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "producers", "Print the idempotent and transactional producers of partitions.", examples=_EXAMPLES
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--topic", action="append", default=[], metavar="T[:0,1]", help="a topic, or some partitions; may be repeated"
    )
    which.add_argument("--all-topics", action="store_true")
    parser.add_argument("--open", action="store_true", help="only producers with an open transaction")
    parser.add_argument("--broker-id", type=int, metavar="N", help="ask this replica, and not the leaders")
    add_client_options(parser)
    return parser


async def _print_producers(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    if options.all_topics:
        topics = (await client.metadata(None)).topics
        partitions = sorted(
            TopicPartition(topic.name or "", partition.partition_index)
            for topic in topics
            for partition in topic.partitions
            if options.broker_id is None or options.broker_id in partition.replica_nodes
        )
    else:
        partitions = await partitions_of(client, options.topic)
    found = []
    with out.progress("Asking for producers", len(partitions)) as advance:
        for begin in range(0, len(partitions), PARTITIONS_PER_REQUEST):
            batch = partitions[begin : begin + PARTITIONS_PER_REQUEST]
            described = await describe_producers(client, batch, options.broker_id)
            found += [
                (tp, producer)
                for tp, producers in described.items()
                for producer in producers
                if not options.open or producer.current_txn_start_offset != NO_TRANSACTION
            ]
            advance(len(batch))
    rows = [{"topic": tp.topic, "partition": tp.partition, **producer_row(producer)} for tp, producer in found]
    cells = [(tp.topic, tp.partition, *producer_cells(producer)) for tp, producer in found]
    out.table(rows, tabbed_lines([("Topic", "Partition", *HEADERS), *cells]))


def producer_row(producer: ProducerState) -> dict[str, object]:
    """The facts about a producer, for programs."""
    start = producer.current_txn_start_offset
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_timestamp,
        "transaction_start_offset": None if start == NO_TRANSACTION else start,
    }


def producer_cells(producer: ProducerState) -> Sequence[object]:
    """The facts about a producer, under `HEADERS`."""
    return ["None" if value is None else value for value in producer_row(producer).values()]
