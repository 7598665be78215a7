"""Metrics of the controller. All but a few are 0 on brokers that are not the active controller.

Kafka: KafkaController, ControllerStats, ControllerEventManager, ControllerState.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from odradek.broker.metrics.family import Family, Histograms, Sample, counters, gauge, gauges, summaries
from odradek.broker.metrics.labels import labelled
from odradek.broker.metrics.view import View
from odradek.controller import events as ev
from odradek.controller.states.context import ControllerContext
from odradek.controller.states.replica_states import ReplicaState
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.histogram import Histogram, sum_of

_CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
_STATS: Final = "kafka.controller:type=ControllerStats,name="
_CHANNELS: Final = "kafka.controller:type=ControllerChannelManager,name="
_EVENTS: Final = "kafka.controller:type=ControllerEventManager,name="

STATES: Final[Mapping[int, tuple[str, tuple[type[object], ...]]]] = {
    1: (
        "ControllerChange",
        (ev.Startup, ev.ControllerChange, ev.Reelect, ev.RegisterBrokerAndReelect, ev.Expire, ev.DeleteController),
    ),
    2: ("LeaderElection", (ev.BrokerChange, ev.BrokerModifications)),
    3: ("TopicChange", (ev.TopicChange, ev.PartitionModifications)),
    4: ("TopicDeletion", (ev.TopicDeletion, ev.TopicDeletionStopReplicaResponseReceived)),
    5: ("PartitionReassignment", (ev.ZkPartitionReassignment, ev.ApiPartitionReassignment)),
    6: ("AutoLeaderBalance", (ev.AutoPreferredReplicaLeaderElection,)),
    7: ("ManualLeaderBalance", (ev.ReplicaLeaderElection,)),
    8: ("ControlledShutdown", (ev.ControlledShutdown,)),
    9: ("IsrChange", (ev.IsrChangeNotification, ev.AlterPartitionReceived)),
    10: ("LeaderAndIsrResponseReceived", (ev.LeaderAndIsrResponseReceived,)),
    11: ("LogDirChange", (ev.LogDirEventNotification,)),
    13: ("UncleanLeaderElectionEnable", (ev.UncleanLeaderElectionEnable,)),
    14: ("TopicUncleanLeaderElectionEnable", (ev.TopicUncleanLeaderElectionEnable,)),
    15: ("ListPartitionReassignment", (ev.ListPartitionReassignments,)),
    16: ("UpdateMetadataResponseReceived", (ev.UpdateMetadataResponseReceived,)),
    17: ("UpdateFeatures", (ev.UpdateFeatures,)),
}
"""Kafka's number of each state of the controller, the name of its timer, and the events that it stands for."""

WITHOUT_TIMER: Final = 16
"""UpdateMetadataResponseReceived: Kafka does not time it either."""

_STATE_OF: Final = {event: number for number, (_, events) in STATES.items() for event in events}


def _state(view: View) -> int:
    current = view.services.controller.events.current
    return 0 if current is None else _STATE_OF.get(current, 0)


def _of_context(mbean: str, description: str, read: Callable[[ControllerContext], float]) -> Family:
    """A figure of the active controller, 0 elsewhere."""

    def value(view: View) -> float:
        controllership = view.services.controller.controllership
        return 0 if controllership is None else read(controllership.context)

    name = f"kafka_controller_kafkacontroller_{mbean.lower()}"
    return gauge(name, description, value, mbean=f"{_CONTROLLER}{mbean}")


def _of_partitions(mbean: str, description: str, counts: Callable[[ControllerContext, TopicPartition], bool]) -> Family:
    """The number of partitions of the cluster for which `counts` is true."""

    def read(view: View) -> Iterator[Sample | None]:
        controllership = view.services.controller.controllership
        found = 0
        if controllership is not None:
            context = controllership.context
            for partition in context.each_partition():
                found += partition.topic not in context.topics_to_be_deleted and counts(context, partition)
                yield None
        yield "", found

    name = f"kafka_controller_kafkacontroller_{mbean.lower()}"
    return gauges(name, (), description, read, mbean=f"{_CONTROLLER}{mbean}")


def _is_offline(context: ControllerContext, partition: TopicPartition) -> bool:
    leadership = context.leadership(partition)
    return leadership is not None and not context.is_replica_online(leadership.leader_and_isr.leader, partition)


def _is_imbalanced(context: ControllerContext, partition: TopicPartition) -> bool:
    """Kafka: ControllerContext.hasPreferredLeader."""
    leadership, assignment = context.leadership(partition), context.full_assignment(partition)
    if leadership is None or not assignment.replicas:
        return False
    preferred, state = assignment.replicas[0], leadership.leader_and_isr
    if preferred in assignment.adding_replicas:  # cannot lead before it is in sync
        return preferred in state.isr
    return state.leader != preferred


def _of_deleted(mbean: str, description: str, counts: Callable[[ReplicaState], bool]) -> Family:
    """The number of replicas of topics that are being deleted for whose state `counts` is true."""

    def read(view: View) -> Iterator[Sample | None]:
        controllership = view.services.controller.controllership
        found = 0
        if controllership is not None:
            for topic in list(controllership.context.topics_to_be_deleted):
                replicas = controllership.context.replicas_of_topic(topic)
                found += sum(counts(controllership.replica_states.state(replica)) for replica in replicas)
                yield None
        yield "", found

    name = f"kafka_controller_kafkacontroller_{mbean.lower()}"
    return gauges(name, (), description, read, mbean=f"{_CONTROLLER}{mbean}")


def _queue_sizes(view: View) -> Iterator[Sample]:
    controllership = view.services.controller.controllership
    if controllership is not None:
        for broker_id, size in sorted(controllership.channel.queue_sizes.items()):
            yield labelled(broker_id=broker_id), size


def _queue_times(view: View) -> Histograms:
    controllership = view.services.controller.controllership
    if controllership is not None:
        for broker_id, times_ms in sorted(controllership.channel.queue_times_ms.items()):
            yield labelled(broker_id=broker_id), times_ms


def _zookeeper_latency(view: View) -> Histograms:
    latency = view.services.controller.zookeeper_latency_ms
    if latency is not None:
        yield "", latency


def _unclean_elections(view: View) -> Iterator[Sample]:
    controllership = view.services.controller.controllership
    yield "", 0 if controllership is None else controllership.partition_states.unclean_leader_elections


def _timer(name: str, events: tuple[type[object], ...]) -> Family:
    mbean = f"{name}RateAndTimeMs"

    def read(view: View) -> Histograms:
        times = view.services.controller.events.times_ms
        found = [times[event] for event in times if event in events]
        yield "", found[0] if len(found) == 1 else sum_of(found)

    return summaries(
        f"kafka_controller_controllerstats_{mbean.lower()}",
        (),
        f"Milliseconds that the controller took for an event of the kind {name}.",
        read,
        mbean=f"{_STATS}{mbean}",
    )


def _queue_time(view: View) -> Histograms:
    queue_time: Histogram = view.services.controller.events.queue_time_ms
    yield "", queue_time


def _session(event: str, description: str) -> Family:
    mbean = f"ZooKeeper{event}PerSec"
    return counters(
        f"kafka_server_sessionexpirelistener_{mbean.removesuffix('PerSec').lower()}_total",
        (),
        description,
        lambda view: (("", view.services.controller.session_events.get(event, 0)),),
        mbean=f"kafka.server:type=SessionExpireListener,name={mbean}",
    )


CONTROLLER_FAMILIES: Final = (
    gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the active controller.",
        lambda view: int(view.services.controller.is_active),
        mbean=f"{_CONTROLLER}ActiveControllerCount",
    ),
    gauge(
        "kafka_controller_kafkacontroller_controllerstate",
        "What the controller does: the numbers of Kafka's ControllerState, 0 for nothing.",
        _state,
        mbean=f"{_CONTROLLER}ControllerState",
    ),
    _of_context("ActiveBrokerCount", "Brokers that are registered.", lambda one: len(one.live_broker_ids)),
    _of_context("GlobalTopicCount", "Topics of the cluster.", lambda one: len(one.all_topics)),
    _of_context("GlobalPartitionCount", "Partitions of the cluster.", lambda one: one.partition_count),
    _of_context("TopicsToDeleteCount", "Topics that are being deleted.", lambda one: len(one.topics_to_be_deleted)),
    _of_context(
        "TopicsIneligibleToDeleteCount",
        "Topics whose deletion waits for a broker, or for a reassignment.",
        lambda one: len(one.topics_ineligible_for_deletion),
    ),
    _of_partitions("OfflinePartitionsCount", "Partitions without a live leader.", _is_offline),
    _of_partitions(
        "PreferredReplicaImbalanceCount", "Partitions whose first replica is not the leader.", _is_imbalanced
    ),
    _of_deleted(
        "ReplicasToDeleteCount",
        "Replicas of topics that are being deleted that are not gone yet.",
        lambda state: state is not ReplicaState.DELETION_SUCCESSFUL,
    ),
    _of_deleted(
        "ReplicasIneligibleToDeleteCount",
        "Replicas whose deletion waits for their broker.",
        lambda state: state is ReplicaState.DELETION_INELIGIBLE,
    ),
    gauge(
        "kafka_controller_controllerchannelmanager_totalqueuesize",
        "Requests of the controller that wait for brokers.",
        lambda view: sum(size for _, size in _queue_sizes(view)),
        mbean=f"{_CHANNELS}TotalQueueSize",
    ),
    gauges(
        "kafka_controller_controllerchannelmanager_queuesize",
        ("broker_id",),
        "Those that wait for one broker.",
        _queue_sizes,
        mbean=f"{_CHANNELS}QueueSize,broker-id=",
    ),
    summaries(
        "kafka_controller_controllerchannelmanager_requestrateandqueuetimems",
        ("broker_id",),
        "Milliseconds that a request of the controller waited until it was sent to the broker.",
        _queue_times,
        mbean=f"{_CHANNELS}RequestRateAndQueueTimeMs,broker-id=",
    ),
    counters(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        (),
        "Leaders that were elected outside the ISR.",
        _unclean_elections,
        mbean=f"{_STATS}UncleanLeaderElectionsPerSec",
    ),
    *(_timer(name, events) for state, (name, events) in STATES.items() if state != WITHOUT_TIMER),
    _session("SyncConnects", "Connections to ZooKeeper."),
    _session("Disconnects", "Connections to ZooKeeper that were lost."),
    _session("Expires", "Sessions with ZooKeeper that expired."),
    _session("AuthFailures", "Refusals of the credentials for ZooKeeper."),
    summaries(
        "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
        (),
        "Milliseconds until ZooKeeper had answered a request; absent without ZooKeeper.",
        _zookeeper_latency,
        mbean="kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
    ),
    gauge(
        "kafka_controller_controllereventmanager_eventqueuesize",
        "Events that wait for the controller.",
        lambda view: len(view.services.controller.events),
        mbean=f"{_EVENTS}EventQueueSize",
    ),
    summaries(
        "kafka_controller_controllereventmanager_eventqueuetimems",
        (),
        "Milliseconds that an event waited for the controller.",
        _queue_time,
        mbean=f"{_EVENTS}EventQueueTimeMs",
    ),
)
