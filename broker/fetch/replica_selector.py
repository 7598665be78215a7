"""Chooses the replica that a consumer should read from (KIP-392), without I/O.

The leader chooses: it has the racks of the replicas from the metadata, and their end offsets from their fetches. Its
answer names the replica and has no records. Only in-sync replicas that have the fetch offset qualify: a lagging one
would send the consumer back to the leader, which would choose the same replica again.

Kafka: ReplicaSelector, RackAwareReplicaSelector, ReplicaView, ReplicaManager.findPreferredReadReplica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.config.keys.replication import RACK_AWARE_REPLICA_SELECTOR

if TYPE_CHECKING:
    from odradek.broker.metadata.metadata_cache import Node
    from odradek.broker.partition.replica import Replica


class ClientMetadata(NamedTuple):
    """The consumer's rack (Fetch v11 on), and the listener of its connection."""

    rack_id: str
    listener_name: str


class ReplicaView(NamedTuple):
    """A candidate. The order of the fields is that of preference: the highest end offset, then the latest time at which
    it was caught up.
    """

    log_end_offset: int
    minus_ms_since_caught_up: int
    broker_id: int
    rack: str | None


ReplicaSelector = Callable[[ClientMetadata, Iterable[ReplicaView], ReplicaView], ReplicaView]
"""Chooses, for a client, between followers that qualify and the leader."""


def rack_aware(client: ClientMetadata, followers: Iterable[ReplicaView], leader: ReplicaView) -> ReplicaView:
    """The leader if it or no follower is in the client's rack, else the follower there with the highest end offset."""
    if not client.rack_id or leader.rack == client.rack_id:
        return leader
    return max((follower for follower in followers if follower.rack == client.rack_id), default=leader)


REPLICA_SELECTORS: Final[Mapping[str, ReplicaSelector]] = {RACK_AWARE_REPLICA_SELECTOR: rack_aware}
"""Selectors by the values of `replica.selector.class`."""


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
    """The broker that a client should fetch `fetch_offset` from; None: the leader, which is this broker.

    `node_of` returns a broker's address on the client's listener.
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
