"""Questions to one broker of a cluster: what it knows of the others, its links, and changes by the controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.controller.events import ElectionType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.testing.node.questions.questions import question
from odradek.testing.observations.waits import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.testing.node.running.running_broker import RunningBroker


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster as one broker knows it. `leader`, `replicas`, `in_sync`: of the partition that was asked for."""

    brokers: tuple[int, ...]
    controller: int | None
    leader: int | None = None
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()


def _view(broker: RunningBroker, topic: str | None, partition: int) -> ClusterView:
    snapshot = broker.services.metadata_cache.snapshot
    state = None if topic is None else snapshot.partitions.get(topic, {}).get(partition)
    return ClusterView(
        brokers=tuple(sorted(snapshot.nodes)),
        controller=snapshot.controller_id,
        leader=None if state is None else state.leader,
        replicas=() if state is None else tuple(state.replicas),
        in_sync=() if state is None else tuple(state.isr),
    )


@question
async def cluster_view(broker: RunningBroker, *, topic: str | None = None, partition: int = 0) -> ClusterView:
    """What the broker knows now."""
    return _view(broker, topic, partition)


@question
async def wait_for_view(
    broker: RunningBroker,
    *,
    timeout_s: float,
    brokers: tuple[int, ...] | None = None,
    leaving: tuple[int, ...] = (),
    not_controller: int | None = None,
    topic: str | None = None,
    partition: int = 0,
    leader: int | None = None,
    not_leader: int | None = None,
    in_sync: tuple[int, ...] | None = None,
) -> tuple[bool, ClusterView]:
    """Wait until the broker knows just these live brokers and any of those that are `leaving`, a controller other than
    `not_controller`, and such a leader and ISR of the partition. Returns whether it does, and what it knows.
    """

    def is_wanted(view: ClusterView) -> bool:
        return (
            (brokers is None or set(brokers) <= set(view.brokers) <= {*brokers, *leaving})
            and view.controller in view.brokers
            and view.controller != not_controller
            and (leader is None or view.leader == leader)
            and (not_leader is None or (view.leader in view.brokers and view.leader != not_leader))
            and (in_sync is None or tuple(sorted(view.in_sync)) == in_sync)
        )

    def look() -> ClusterView | None:
        view = _view(broker, topic, partition)
        return view if is_wanted(view) else None

    found = await broker.observations.waits.until(look, (Change.METADATA,), timeout_s)
    return (True, found) if found is not None else (False, _view(broker, topic, partition))


@question
async def wait_for_delivery(broker: RunningBroker, *, brokers: tuple[int, ...], timeout_s: float) -> bool:
    """To the controller: wait until it has no request left for these brokers. Returns whether that is so.

    A broker that is no controller has none.
    """

    def look() -> bool | None:
        controllership = broker.services.controller.controllership
        sizes = {} if controllership is None else controllership.channel.queue_sizes
        return None if any(sizes.get(each) for each in brokers) else True

    return bool(await broker.observations.waits.until(look, (Change.EXCHANGES,), timeout_s))


@question
async def hold_links(broker: RunningBroker, *, ports: tuple[int, ...]) -> None:
    """Hold the links to these ports, and release all others."""
    broker.links.hold(ports)


@question
async def move_leader(broker: RunningBroker, *, topic: str, partition: int, to: int) -> str | None:
    """To the controller: make a replica the preferred one and elect it. Returns the error, or None."""
    controller = broker.services.controller
    state = broker.services.metadata_cache.partition_state(topic, partition)
    if state is None:
        return f"{topic}-{partition} does not exist"
    if to not in state.replicas:
        return f"broker {to} is not a replica of {topic}-{partition}; {', '.join(map(str, state.replicas))} are"
    where = TopicPartition(topic, partition)
    order = (to, *(replica for replica in state.replicas if replica != to))
    if tuple(state.replicas) != order:
        altered = await controller.alter_partition_reassignments([(where, order)])
        error = _first_error(altered)
        if error is not None:
            return error
    results = await controller.elect_leaders(frozenset((where,)), ElectionType.PREFERRED)
    return _first_error(results.values())


def _first_error(results: Iterable[object]) -> str | None:
    for result in results:
        if isinstance(result, KafkaError) and result.code != ErrorCode.ELECTION_NOT_NEEDED:
            return str(result)
    return None
