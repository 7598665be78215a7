"""`odradek transactions`: lists, describes and ends transactions, and finds hanging ones.

Options and lines are those of kafka-transactions; `forceTerminateTransaction` is that of Apache Kafka 4.0.

Kafka: TransactionsCommand, KafkaAdminClient.fenceProducers.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.client.coordinators import KeyType, ask_coordinators
from odradek.broker.tools.admin.transactions.producer_states import describe_producers
from odradek.broker.tools.admin.transactions.producers import HEADERS as PRODUCER_HEADERS
from odradek.broker.tools.admin.transactions.producers import producer_cells, producer_row
from odradek.broker.tools.admin.transactions.transaction_requests import describe_transactions, list_transactions
from odradek.broker.tools.command.arguments import add_client_options, add_subcommand, command_parser
from odradek.broker.tools.command.columns import tabbed_lines
from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

MAX_TRANSACTION_TIMEOUT_MIN: Final = 15
FENCING_TIMEOUT_MS: Final = 1
"""The transaction timeout with which a producer is fenced: no transaction begins with it."""

_EXAMPLES: Final = """\
  odradek transactions list --duration-filter 60000
  odradek transactions describe --transactional-id orders-1
  odradek transactions find-hanging --topic t
  odradek transactions abort --topic t --partition 0 --start-offset 1234
"""
_HEADERS: Final = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if options.command == "abort" and options.start_offset is None:
        for name in ("producer_id", "producer_epoch", "coordinator_epoch"):
            if getattr(options, name) is None:
                command.error(
                    "The transaction to abort must be identified either with --start-offset, or with --producer-id, "
                    "--producer-epoch, and --coordinator-epoch"
                )
    if options.command == "find-hanging":
        if options.topic is None and options.broker_id is None:
            command.error(
                "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
            )
        if options.partition is not None and options.topic is None:
            command.error("The --partition argument requires --topic to be provided")
    return run(options, _work)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "transactions", "List, describe and end transactions, as kafka-transactions does.", examples=_EXAMPLES
    )
    add_client_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    listing = add_subcommand(commands, "list", "list transactions")
    listing.add_argument(
        "--duration-filter", type=int, default=None, metavar="MS", help="only those that run longer than this"
    )
    describing = add_subcommand(commands, "describe", "describe the state of an active transactional-id")
    describing.add_argument("--transactional-id", required=True, metavar="ID")
    producers = add_subcommand(
        commands, "describe-producers", "describe the states of active producers for a topic partition"
    )
    producers.add_argument("--broker-id", type=int, default=None, metavar="N", help="ask this replica, not the leader")
    _add_partition(producers, required=True)
    aborting = add_subcommand(commands, "abort", "abort a hanging transaction")
    _add_partition(aborting, required=True)
    aborting.add_argument(
        "--start-offset", type=int, default=None, metavar="N", help="start offset of the transaction; enough alone"
    )
    for name in ("producer-id", "producer-epoch", "coordinator-epoch"):
        aborting.add_argument(f"--{name}", type=int, default=None, metavar="N")
    hanging = add_subcommand(commands, "find-hanging", "find hanging transactions")
    hanging.add_argument("--broker-id", type=int, default=None, metavar="N")
    hanging.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=MAX_TRANSACTION_TIMEOUT_MIN,
        metavar="MIN",
        help="look at transactions that are older; default 15 minutes",
    )
    _add_partition(hanging, required=False)
    ending = add_subcommand(
        commands, "forceTerminateTransaction", "fence the producer of a transactional id, which aborts its transaction"
    )
    ending.add_argument("--transactional-id", required=True, metavar="ID")
    return parser


def _add_partition(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--topic", required=required, default=None)
    parser.add_argument("--partition", type=int, required=required, default=None, metavar="N")


async def _work(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    if options.command == "list":
        await _list(client, out, options.duration_filter)
    elif options.command == "describe":
        await _describe(client, out, options.transactional_id)
    elif options.command == "describe-producers":
        await _describe_producers(client, out, options)
    elif options.command == "forceTerminateTransaction":
        await _fence(client, out, options.transactional_id)
    else:
        from odradek.broker.tools.admin.transactions import hanging_transactions

        if options.command == "abort":
            await hanging_transactions.abort(client, out, options)
        else:
            await hanging_transactions.find(client, out, options)


async def _list(client: AdminClient, out: Output, longer_than_ms: int | None) -> None:
    listed = await list_transactions(client, longer_than_ms=longer_than_ms)
    rows = [
        {
            "transactional_id": found.transactional_id,
            "coordinator": broker_id,
            "producer_id": found.producer_id,
            "state": found.transaction_state,
        }
        for broker_id, found in listed
    ]
    headers = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
    out.table(rows, tabbed_lines([headers, *([*row.values()] for row in rows)]))


async def _describe(client: AdminClient, out: Output, transactional_id: str) -> None:
    described = (await describe_transactions(client, [transactional_id]))[transactional_id]
    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    check(described.error_code, None, what)
    found = described.state
    is_open = found.transaction_start_time_ms >= 0
    partitions = [TopicPartition(topic.topic, index) for topic in found.topics for index in topic.partitions]
    row: dict[str, object] = {
        "coordinator": described.broker_id,
        "transactional_id": transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.transaction_state,
        "timeout_ms": found.transaction_timeout_ms,
        "start_time_ms": found.transaction_start_time_ms if is_open else None,
        "duration_ms": client.clock.time_ms() - found.transaction_start_time_ms if is_open else None,
        "partitions": [str(tp) for tp in sorted(partitions)],
    }
    cells = ["None" if value is None else value for value in row.values()]
    cells[-1] = ",".join(str(tp) for tp in sorted(partitions))
    out.table([row], tabbed_lines([_HEADERS, cells]))


async def _describe_producers(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    tp = TopicPartition(options.topic, options.partition)
    producers = (await describe_producers(client, [tp], options.broker_id))[tp]
    out.table(map(producer_row, producers), tabbed_lines([PRODUCER_HEADERS, *map(producer_cells, producers)]))


async def _fence(client: AdminClient, out: Output, transactional_id: str) -> None:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS)

    async def ask(broker_id: int, keys: Sequence[str]) -> Mapping[str, InitProducerIdResponse]:
        return {transactional_id: await client.ask_broker(broker_id, request, InitProducerIdResponse)}

    response = (await ask_coordinators(client, KeyType.TRANSACTION, [transactional_id], ask))[transactional_id]
    if response.error_code != ErrorCode.NONE:
        why = error_text(response.error_code)
        raise CommandFailed(f"Failed to force terminate transactional-id `{transactional_id}`: {why}")
    out.result(
        [
            {
                "transactional_id": transactional_id,
                "producer_id": response.producer_id,
                "producer_epoch": response.producer_epoch,
            }
        ],
        (),
    )
