"""`odradek cluster`: prints controller, live brokers, and partitions without a leader or with replicas out of sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.command.arguments import add_client_options, command_parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output
    from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition


def main(arguments: Sequence[str]) -> int:
    """Print the state of a cluster. Returns the exit status."""
    return run(parser().parse_args(arguments), _describe)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser(
        "cluster",
        "Print the controller, the live brokers, and the partitions without a leader or with too few replicas in sync. "
        "Exit status 0 in any state of the cluster.",
    )
    add_client_options(parser)
    return parser


async def _describe(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    metadata = await client.metadata(None)
    out.document(facts(metadata), describe(metadata))


def facts(metadata: MetadataResponse) -> dict[str, object]:
    """What `describe` says, for programs."""
    partitions = _partitions(metadata)
    return {
        "cluster_id": metadata.cluster_id,
        "controller": metadata.controller_id if _has_controller(metadata) else None,
        "brokers": [
            {"id": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
            for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id)
        ],
        "topics": len(metadata.topics),
        "partitions": len(partitions),
        "unhealthy_partitions": [
            {
                "topic": topic,
                "partition": partition.partition_index,
                "leader": partition.leader_id if partition.leader_id >= 0 else None,
                "replicas": partition.replica_nodes,
                "isr": partition.isr_nodes,
            }
            for topic, partition in partitions
            if _is_without_leader(partition) or _is_under_replicated(partition)
        ],
    }


def describe(metadata: MetadataResponse) -> Iterator[str]:
    """The lines: the cluster, its brokers, and each partition without a leader or with replicas out of sync."""
    yield f"Cluster: {metadata.cluster_id}"
    for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id):
        rack = "" if broker.rack is None else f"\tRack: {broker.rack}"
        controller = "\tController" if broker.node_id == metadata.controller_id else ""
        yield f"Broker: {broker.node_id}\tAddress: {broker.host}:{broker.port}{rack}{controller}"
    if not _has_controller(metadata):
        yield "Controller: none"
    partitions = _partitions(metadata)
    without_leader = sum(_is_without_leader(partition) for _, partition in partitions)
    under_replicated = sum(_is_under_replicated(partition) for _, partition in partitions)
    yield (
        f"Topics: {len(metadata.topics)}\tPartitions: {len(partitions)}\t"
        f"Without a leader: {without_leader}\tUnder-replicated: {under_replicated}"
    )
    for topic, partition in partitions:
        if _is_without_leader(partition) or _is_under_replicated(partition):
            yield describe_partition(topic, partition)


def _partitions(metadata: MetadataResponse) -> list[tuple[str, MetadataResponsePartition]]:
    return [
        (topic.name or "", partition)
        for topic in sorted(metadata.topics, key=lambda topic: topic.name or "")
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]


def _has_controller(metadata: MetadataResponse) -> bool:
    return any(broker.node_id == metadata.controller_id for broker in metadata.brokers)


def _is_without_leader(partition: MetadataResponsePartition) -> bool:
    return partition.leader_id < 0


def _is_under_replicated(partition: MetadataResponsePartition) -> bool:
    return len(partition.isr_nodes) < len(partition.replica_nodes)


def describe_partition(topic: str, partition: MetadataResponsePartition) -> str:
    """The beginning of a partition's line, as kafka-topics --describe prints it."""
    return (
        f"\tTopic: {topic}\tPartition: {partition.partition_index}\t"
        f"Leader: {partition.leader_id if partition.leader_id >= 0 else 'none'}\t"
        f"Replicas: {ids_text(partition.replica_nodes)}\tIsr: {ids_text(partition.isr_nodes)}"
    )


def ids_text(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))
