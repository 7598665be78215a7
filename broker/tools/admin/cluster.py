"""`odradek cluster`: prints controller, live brokers, and partitions without a leader or with replicas out of sync."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from odradek.broker.tools.admin.admin_client import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from odradek.broker.tools.admin.admin_client import AdminClient
    from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition


def main(arguments: Sequence[str]) -> int:
    """Print the state of a cluster. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="odradek cluster",
        description="Print the controller, the live brokers, and the partitions without a leader or with too few "
        "replicas in sync. Exit status 0 in any state of the cluster.",
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT,...")
    return run(parser.parse_args(arguments).bootstrap_server, _describe)


async def _describe(client: AdminClient) -> None:
    for line in describe(await client.metadata(None)):
        sys.stdout.write(line + "\n")


def describe(metadata: MetadataResponse) -> Iterator[str]:
    """The lines: the cluster, its brokers, and each partition without a leader or with replicas out of sync."""
    yield f"Cluster: {metadata.cluster_id}"
    for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id):
        rack = "" if broker.rack is None else f"\tRack: {broker.rack}"
        controller = "\tController" if broker.node_id == metadata.controller_id else ""
        yield f"Broker: {broker.node_id}\tAddress: {broker.host}:{broker.port}{rack}{controller}"
    if all(broker.node_id != metadata.controller_id for broker in metadata.brokers):
        yield "Controller: none"
    partitions = [
        (topic.name or "", partition)
        for topic in sorted(metadata.topics, key=lambda topic: topic.name or "")
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]
    without_leader = [found for found in partitions if found[1].leader_id < 0]
    under_replicated = [found for found in partitions if len(found[1].isr_nodes) < len(found[1].replica_nodes)]
    yield (
        f"Topics: {len(metadata.topics)}\tPartitions: {len(partitions)}\t"
        f"Without a leader: {len(without_leader)}\tUnder-replicated: {len(under_replicated)}"
    )
    unhealthy = {(topic, partition.partition_index) for topic, partition in (*without_leader, *under_replicated)}
    for topic, partition in partitions:
        if (topic, partition.partition_index) in unhealthy:
            yield describe_partition(topic, partition)


def describe_partition(topic: str, partition: MetadataResponsePartition) -> str:
    """The beginning of a partition's line, as kafka-topics --describe prints it."""
    return (
        f"\tTopic: {topic}\tPartition: {partition.partition_index}\t"
        f"Leader: {partition.leader_id if partition.leader_id >= 0 else 'none'}\t"
        f"Replicas: {ids_text(partition.replica_nodes)}\tIsr: {ids_text(partition.isr_nodes)}"
    )


def ids_text(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))
