"""Finds and aborts hanging transactions: open in a partition, and not under way at their coordinator.

Such a transaction holds the last stable offset of its partition back until a marker ends it.

Kafka: TransactionsCommand.FindHangingTransactionsCommand, TransactionsCommand.AbortTransactionCommand,
AbortTransactionHandler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.admin.client.partition_leaders import PartitionLeaders
from odradek.broker.tools.admin.transactions.producer_states import NO_TRANSACTION, describe_producers
from odradek.broker.tools.admin.transactions.transaction_requests import (
    DescribedTransaction,
    describe_transactions,
    list_transactions,
)
from odradek.broker.tools.command.columns import tabbed_lines
from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import ProducerState
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

PARTITIONS_PER_REQUEST: Final = 500
MS_PER_MIN: Final = 60_000
_HEADERS: Final = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


class Open(NamedTuple):
    """An open transaction of a producer in a partition."""

    topic_partition: TopicPartition
    producer: ProducerState


async def find(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    """Print the hanging transactions. Raises: CommandFailed."""
    partitions = await _partitions(client, options)
    oldest_ms = client.clock.time_ms() - options.max_transaction_timeout * MS_PER_MIN
    candidates: list[Open] = []
    with out.progress("Looking for open transactions", len(partitions)) as advance:
        for begin in range(0, len(partitions), PARTITIONS_PER_REQUEST):
            batch = partitions[begin : begin + PARTITIONS_PER_REQUEST]
            for tp, producers in (await describe_producers(client, batch, options.broker_id)).items():
                candidates += [
                    Open(tp, producer)
                    for producer in producers
                    if producer.current_txn_start_offset != NO_TRANSACTION and producer.last_timestamp < oldest_ms
                ]
            advance(len(batch))
    ids: dict[int, str] = {}
    described: Mapping[str, DescribedTransaction] = {}
    if candidates:
        listed = await list_transactions(client, producer_ids={found.producer.producer_id for found in candidates})
        ids = {found.producer_id: found.transactional_id for _, found in listed}
        described = await describe_transactions(client, ids.values())
    _print(client, out, hanging(candidates, ids, described))


def hanging(
    candidates: Sequence[Open], ids: Mapping[int, str], described: Mapping[str, DescribedTransaction]
) -> list[Open]:
    """The candidates whose coordinator has no transaction under way in their partition. Raises: CommandFailed."""
    found = []
    for candidate in candidates:
        transactional_id = ids.get(candidate.producer.producer_id)
        state = None if transactional_id is None else described[transactional_id]
        if state is not None and state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            state = None
        if state is not None:
            check(state.error_code, None, f"Failed to describe transactional-id `{transactional_id}`")
            topic, partition = candidate.topic_partition
            # The coordinator will still write the marker of a partition that it names.
            if any(named.topic == topic and partition in named.partitions for named in state.state.topics):
                continue
        found.append(candidate)
    return found


async def abort(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    """Write an abort marker into a partition. Raises: CommandFailed."""
    tp = TopicPartition(options.topic, options.partition)
    if options.start_offset is None:
        marker = WritableTxnMarker(
            producer_id=options.producer_id,
            producer_epoch=options.producer_epoch,
            coordinator_epoch=max(options.coordinator_epoch, 0),
        )
    else:
        marker = await _marker_for(client, tp, options.start_offset)
    marker.topics = [WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])]

    async def ask(leader: int, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, _Written]:
        request = WriteTxnMarkersRequest(markers=[marker])
        response = await client.ask_broker(leader, request, WriteTxnMarkersResponse)
        ((result,),) = [topic.partitions for written in response.markers for topic in written.topics]
        return {tp: _Written(result.error_code)}

    result = (await PartitionLeaders(client).ask([tp], ask, _Written))[tp]
    if result.error_code != ErrorCode.NONE:
        why = error_text(result.error_code)
        raise CommandFailed(f"Failed to abort transaction of producer {marker.producer_id} in {tp}: {why}")
    out.result([{"topic": tp.topic, "partition": tp.partition, "producer_id": marker.producer_id}], ())


class _Written(NamedTuple):
    error_code: int


async def _marker_for(client: AdminClient, tp: TopicPartition, start_offset: int) -> WritableTxnMarker:
    for producer in (await describe_producers(client, [tp]))[tp]:
        if producer.current_txn_start_offset == start_offset:
            return WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                # A producer that hung in its first transaction has epoch -1 here.
                coordinator_epoch=max(producer.coordinator_epoch, 0),
            )
    raise CommandFailed(f"Could not find any open transactions starting at offset {start_offset} on partition {tp}")


async def _partitions(client: AdminClient, options: argparse.Namespace) -> list[TopicPartition]:
    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    topics = (await client.metadata(None if options.topic is None else [options.topic])).topics
    for topic in topics:
        check(topic.error_code, None, f"Topic '{topic.name}'")
    return sorted(
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in topics
        for partition in topic.partitions
        if options.broker_id is None or options.broker_id in partition.replica_nodes
    )


def _print(client: AdminClient, out: Output, found: Sequence[Open]) -> None:
    now_ms = client.clock.time_ms()
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "start_offset": producer.current_txn_start_offset,
            "last_timestamp": producer.last_timestamp,
            "duration_min": (now_ms - producer.last_timestamp) // MS_PER_MIN,
        }
        for tp, producer in found
    ]
    out.table(rows, tabbed_lines([_HEADERS, *([*row.values()] for row in rows)]))
