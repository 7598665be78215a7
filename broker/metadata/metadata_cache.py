"""The cluster's metadata on this broker: leaders, replicas, live brokers, topic ids.

Only UpdateMetadata requests change the snapshot, on one node as in a cluster. Every request builds a new
`MetadataSnapshot` and replaces the old one, so a reader that took a snapshot sees one state of the cluster for as long
as it uses it.

The partitions of a request are incremental, but its live brokers are the complete list. Leader -2 removes a partition.
A topic with the zero id loses its former id.

Kafka: ZkMetadataCache, MetadataSnapshot, ZkMetadataCache.updateMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.controller.model.leader_and_isr import LEADER_DURING_DELETE, NO_LEADER
from odradek.controller.model.topic_names import INTERNAL_TOPICS
from odradek.controller.znodes.features import UNKNOWN_EPOCH
from odradek.protocol.codec.arrays.kept_array import KeptArray
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.config.listeners import ListenerSecurity


class Node(NamedTuple):
    """The address of a live broker on one listener."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MetadataSnapshot:
    """The cluster at one moment; never changed after it was built.

    `partitions`: topic → partition index → state as the controller last sent it. `nodes`: broker id → listener →
    address.
    """

    partitions: Mapping[str, Mapping[int, UpdateMetadataPartitionState]] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    nodes: Mapping[int, Mapping[str, Node]] = field(default_factory=dict)
    controller_id: int | None = None
    answers: dict[tuple[str, str, bool, bool], KeptArray[MetadataResponsePartition]] = field(default_factory=dict)
    """Cached parts of Metadata responses, by the arguments of `_partition_answers`, with their bytes. They go with the
    snapshot, so they are never out of date; there are at most a few variants of each topic."""

    def node(self, broker_id: int, listener: str) -> Node | None:
        """The address of `broker_id` on `listener`, or None when it is dead or lacks that listener."""
        listeners = self.nodes.get(broker_id)
        return None if listeners is None else listeners.get(listener)


class MetadataCache:
    """The current `MetadataSnapshot`, and queries on it."""

    __slots__ = ("_broker_id", "finalized_features_epoch", "snapshot")

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self.snapshot = MetadataSnapshot()
        self.finalized_features_epoch = UNKNOWN_EPOCH
        """Comes from the metadata tree, and not with UpdateMetadata."""

    def update_features_epoch(self, epoch: int) -> None:
        """Kafka: ZkMetadataCache.updateFeaturesOrThrow, ZkMetadataCache.clearFeatures."""
        self.finalized_features_epoch = epoch

    def update(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Apply one UpdateMetadata request; return the partitions it deletes, whether they were known here or not.

        A broker that has just started may learn of a topic only by its deletion, and may have offsets committed for it.
        """
        old = self.snapshot
        partitions: dict[str, Mapping[int, UpdateMetadataPartitionState]] = dict(old.partitions)
        topic_ids = dict(old.topic_ids)
        topic_names = dict(old.topic_names)
        deleted: dict[TopicPartition, None] = {}
        for topic, topic_id, states in _topic_states(request):
            merged = dict(partitions.get(topic, {}))
            for state in states:
                if state.leader == LEADER_DURING_DELETE:
                    merged.pop(state.partition_index, None)
                    deleted[TopicPartition(topic, state.partition_index)] = None
                else:
                    merged[state.partition_index] = state
                    if deleted:
                        deleted.pop(TopicPartition(topic, state.partition_index), None)
            if topic_id is not None or not merged:
                _forget_id(topic, topic_ids, topic_names)
            if not merged:
                partitions.pop(topic, None)
                continue
            partitions[topic] = merged
            if topic_id is not None and topic_id != ZERO_UUID:
                topic_ids[topic] = topic_id
                topic_names[topic_id] = topic
        self.snapshot = MetadataSnapshot(
            partitions=partitions,
            topic_ids=topic_ids,
            topic_names=topic_names,
            nodes=_nodes(request),
            controller_id=None if request.controller_id < 0 else request.controller_id,
        )
        return list(deleted)

    def contains(self, topic: str) -> bool:
        return topic in self.snapshot.partitions

    def contains_partition(self, topic: str, partition: int) -> bool:
        return partition in self.snapshot.partitions.get(topic, ())

    def topic_id(self, topic: str) -> bytes:
        """The id of `topic`, the zero id when it has none or is unknown."""
        return self.snapshot.topic_ids.get(topic, ZERO_UUID)

    def topic_name(self, topic_id: bytes) -> str | None:
        return self.snapshot.topic_names.get(topic_id)

    def partition_state(self, topic: str, partition: int) -> UpdateMetadataPartitionState | None:
        return self.snapshot.partitions.get(topic, {}).get(partition)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.snapshot.nodes

    def alive_nodes(self, listener: str) -> Iterator[Node]:
        """The address of every live broker that has `listener`."""
        for listeners in self.snapshot.nodes.values():
            node = listeners.get(listener)
            if node is not None:
                yield node

    def end_point(self, broker_id: int, listener: ListenerSecurity) -> EndPoint | None:
        """The address of a broker for requests of brokers; None when it is dead or lacks that listener. The security
        protocol is that of our own listener, not the registered one.
        """
        node = self.snapshot.node(broker_id, listener.name)
        return None if node is None else EndPoint(node.host, node.port, listener.name, listener.security_protocol)

    def topic_metadata(
        self,
        topics: Iterable[str],
        listener: str,
        *,
        error_unavailable_endpoints: bool,
        error_unavailable_listeners: bool,
    ) -> Iterator[MetadataResponseTopic]:
        """Metadata of those `topics` that exist, for a client of `listener`; all from the present snapshot.

        `error_unavailable_endpoints` (Metadata v0): dead replicas are omitted and reported as REPLICA_NOT_AVAILABLE.
        `error_unavailable_listeners` (v6 on): a live leader without the listener is LISTENER_NOT_FOUND.
        """
        snapshot = self.snapshot
        return (
            MetadataResponseTopic(
                error_code=ErrorCode.NONE,
                name=topic,
                topic_id=snapshot.topic_ids.get(topic, ZERO_UUID),
                is_internal=topic in INTERNAL_TOPICS,
                partitions=_partition_answers(
                    snapshot, topic, listener, error_unavailable_endpoints, error_unavailable_listeners
                ),
            )
            for topic in topics
            if topic in snapshot.partitions
        )


def _forget_id(topic: str, topic_ids: dict[str, bytes], topic_names: dict[bytes, str]) -> None:
    topic_id = topic_ids.pop(topic, ZERO_UUID)
    if topic_names.get(topic_id) == topic:
        del topic_names[topic_id]


def _topic_states(
    request: UpdateMetadataRequest,
) -> Iterator[tuple[str, bytes | None, list[UpdateMetadataPartitionState]]]:
    """Topic name, topic id and states: grouped by topic since v5, a flat list before. The id is None where there are
    no groups: such a request says nothing of the ids, and Apache Kafka keeps those that it knows.
    """
    if request.ungrouped_partition_states:
        by_topic: dict[str, list[UpdateMetadataPartitionState]] = {}
        for state in request.ungrouped_partition_states:
            by_topic.setdefault(state.topic_name, []).append(state)
        for topic, states in by_topic.items():
            yield topic, None, states
    for topic_state in request.topic_states:
        yield topic_state.topic_name, topic_state.topic_id, topic_state.partition_states


def _nodes(request: UpdateMetadataRequest) -> dict[int, dict[str, Node]]:
    nodes: dict[int, dict[str, Node]] = {}
    for broker in request.live_brokers:
        listeners = {
            _listener(endpoint): Node(broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            for endpoint in broker.endpoints
        }
        if not listeners and broker.v0_host:
            listeners["PLAINTEXT"] = Node(broker_id=broker.id, host=broker.v0_host, port=broker.v0_port)
        nodes[broker.id] = listeners
    return nodes


def _listener(endpoint: UpdateMetadataEndpoint) -> str:
    """The listener's name; before v3 the name of its security protocol."""
    if endpoint.listener:
        return endpoint.listener
    known = {protocol.value: protocol.name for protocol in SecurityProtocol}
    return known.get(endpoint.security_protocol, "")


def _partition_answers(
    snapshot: MetadataSnapshot,
    topic: str,
    listener: str,
    error_unavailable_endpoints: bool,
    error_unavailable_listeners: bool,
) -> KeptArray[MetadataResponsePartition]:
    """Metadata of every partition of `topic`, cached in the snapshot: it is read far more often than it changes."""
    asked = topic, listener, error_unavailable_endpoints, error_unavailable_listeners
    answers = snapshot.answers.get(asked)
    if answers is None:
        answers = snapshot.answers[asked] = KeptArray(
            _partition_metadata(snapshot, state, listener, error_unavailable_endpoints, error_unavailable_listeners)
            for state in snapshot.partitions[topic].values()
        )
    return answers


def _partition_metadata(
    snapshot: MetadataSnapshot,
    state: UpdateMetadataPartitionState,
    listener: str,
    error_unavailable_endpoints: bool,
    error_unavailable_listeners: bool,
) -> MetadataResponsePartition:
    replicas, isr = state.replicas, state.isr
    if error_unavailable_endpoints:
        replicas = [broker_id for broker_id in replicas if snapshot.node(broker_id, listener) is not None]
        isr = [broker_id for broker_id in isr if snapshot.node(broker_id, listener) is not None]
    leader_id = state.leader
    if snapshot.node(leader_id, listener) is None:
        leaderless = leader_id not in snapshot.nodes or not error_unavailable_listeners
        error = ErrorCode.LEADER_NOT_AVAILABLE if leaderless else ErrorCode.LISTENER_NOT_FOUND
        leader_id = NO_LEADER
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    else:
        error = ErrorCode.NONE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=state.partition_index,
        leader_id=leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=state.offline_replicas,
    )
