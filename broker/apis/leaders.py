"""The leader of a partition and the addresses of brokers, as responses contain them.

Kafka: KafkaApis.getCurrentLeader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from odradek.broker.metadata.metadata_cache import Node
from odradek.controller.model.leader_and_isr import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages import fetch, produce
    from odradek.protocol.topic_partition import TopicPartition

EndPointT = TypeVar("EndPointT", "fetch.NodeEndpoint", "produce.NodeEndpoint")


class Leader(NamedTuple):
    """Leader id and epoch, -1 when unknown; `node` is its address on the client's listener."""

    leader_id: int
    leader_epoch: int
    node: Node | None


def current_leader(broker: Services, ctx: RequestContext, topic_partition: TopicPartition) -> Leader:
    """The leader as the replica manager knows it, else as the metadata cache does (KIP-951)."""
    hosted = broker.replica_manager.hosted(topic_partition)
    if hosted is not None:
        leader_id = NO_LEADER if hosted.leader_id is None else hosted.leader_id
        leader_epoch = hosted.leader_epoch
    else:
        state = broker.metadata_cache.partition_state(topic_partition.topic, topic_partition.partition)
        if state is None:
            return Leader(NO_LEADER, -1, None)
        leader_id, leader_epoch = state.leader, state.leader_epoch
    return Leader(leader_id, leader_epoch, reachable_node(broker, ctx, leader_id))


class LeaderIdAndEpoch(Protocol):
    """The struct of that name in the responses of Produce and Fetch."""

    leader_id: int
    leader_epoch: int


def name_leader(
    broker: Services,
    ctx: RequestContext,
    topic_partition: TopicPartition,
    answer: LeaderIdAndEpoch,
    end_points: dict[int, EndPointT],
    end_point: type[EndPointT],
) -> None:
    """Set the partition's leader in `answer` and the address of the leader in `end_points` (KIP-951)."""
    leader = current_leader(broker, ctx, topic_partition)
    answer.leader_id, answer.leader_epoch = leader.leader_id, leader.leader_epoch
    node = leader.node
    if node is not None:
        end_points[node.broker_id] = end_point(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)


def reachable_node(broker: Services, ctx: RequestContext, broker_id: int) -> Node | None:
    """The address of `broker_id` on the client's listener."""
    node = broker.metadata_cache.snapshot.node(broker_id, ctx.connection.listener_name)
    return None if node is None else as_client_sees_it(broker, ctx, node)


def reachable_nodes(broker: Services, ctx: RequestContext) -> Iterator[Node]:
    """Every live broker that has the client's listener."""
    for node in broker.metadata_cache.alive_nodes(ctx.connection.listener_name):
        yield as_client_sees_it(broker, ctx, node)


def as_client_sees_it(broker: Services, ctx: RequestContext, node: Node) -> Node:
    """The node as this client can reach it: a single node without `advertised.listeners` gets the address that the
    client connected to.
    """
    if node.broker_id == broker.broker_id and broker.config.listeners.advertise_connected_address:
        return Node(
            broker_id=node.broker_id, host=ctx.connection.local_host, port=ctx.connection.local_port, rack=node.rack
        )
    return node
