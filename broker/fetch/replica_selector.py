"""Which replica a consumer should rather read from than the leader (KIP-392), decided purely.

The leader is asked. It knows the racks of the replicas from the metadata and what each of them has from its fetches,
and names one in its answer, in which there are then no records. Replicas qualify that are in sync and have the offset
that is asked for: one that lags would send the consumer back, and the leader would send it there again.

Kafka: ReplicaSelector, RackAwareReplicaSelector, ReplicaView and ReplicaManager.findPreferredReadReplica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.config.keys.replication import RACK_AWARE_REPLICA_SELECTOR

if TYPE_CHECKING:
    from odradek.broker.metadata.metadata_cache import Node
    from odradek.broker.partition.replica import Replica


class ClientMetadata(NamedTuple):
    """What a consumer says of itself (Fetch v11 on)."""

    rack_id: str
    listener_name: str


class ReplicaView(NamedTuple):
    """What can be chosen. The order of the fields is that of preference: who has most, who was caught up last."""

    log_end_offset: int
    minus_ms_since_caught_up: int
    broker_id: int
    rack: str | None


ReplicaSelector = Callable[[ClientMetadata, Iterable[ReplicaView], ReplicaView], ReplicaView]
"""Chooses, for a client, between followers that qualify and the leader."""


def rack_aware(client: ClientMetadata, followers: Iterable[ReplicaView], leader: ReplicaView) -> ReplicaView:
    """The leader if it is in the client's rack or nobody is, else the follower there that is furthest."""
    if not client.rack_id or leader.rack == client.rack_id:
        return leader
    return max((follower for follower in followers if follower.rack == client.rack_id), default=leader)


REPLICA_SELECTORS: Final[Mapping[str, ReplicaSelector]] = {RACK_AWARE_REPLICA_SELECTOR: rack_aware}
"""By the values that `replica.selector.class` may have."""


def preferred_read_replica(
    selector: ReplicaSelector,
    client: ClientMetadata,
    fetch_offset: int,
    *,
    leader: int,
    replicas: Iterable[Replica],
    isr: Iterable[int],
    node_of: Callable[[int], Node | None],
    now_ms: int,
) -> int | None:
    """The broker that a client should fetch `fetch_offset` from; None: from the leader, who is asked.

    `node_of` answers a broker's address on the client's listener.
    """

    def rack_of(broker_id: int) -> str | None:
        node = node_of(broker_id)
        return None if node is None else node.rack

    followers = [
        ReplicaView(end, replica.last_caught_up_ms - now_ms, replica.broker_id, rack_of(replica.broker_id))
        for replica in replicas
        if replica.broker_id in isr
        and (end := replica.end_offset) >= fetch_offset
        and replica.log_start_offset <= fetch_offset
    ]
    chosen = selector(client, followers, ReplicaView(0, 0, leader, rack_of(leader)))
    return None if chosen.broker_id == leader else chosen.broker_id
