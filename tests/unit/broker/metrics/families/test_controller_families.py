from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest

from odradek.broker.metrics.families.controller_families import STATES
from odradek.controller import events
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.states.replica_states import ReplicaState
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.histogram import Histogram
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker

CONTROLLER = "kafka_controller_kafkacontroller_"


def test_the_active_controller_counts_the_cluster(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 3)
    found = scraped.scrape()
    assert found.value(f"{CONTROLLER}activecontrollercount") == 1
    assert found.value(f"{CONTROLLER}globaltopiccount") == 1
    assert found.value(f"{CONTROLLER}globalpartitioncount") == 3
    assert found.value(f"{CONTROLLER}activebrokercount") == found.value("kafka_brokers") == 1
    assert found.value(f"{CONTROLLER}offlinepartitionscount") == 0
    assert found.value("kafka_controller_controllerstats_topicchangerateandtimems_count") >= 1
    assert found.value("kafka_controller_controllereventmanager_eventqueuetimems_count") >= 2


def test_partitions_with_a_dead_leader_are_offline(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 3)
    controllership = broker.services.controller.controllership
    assert controllership is not None
    controllership.context.replicas_on_offline_dirs[0] = frozenset(controllership.context.partitions_of("t")[:2])
    controllership.partition_states.unclean_leader_elections = 4
    found = scraped.scrape()
    assert found.value(f"{CONTROLLER}offlinepartitionscount") == 2
    assert found.value("kafka_controller_controllerstats_uncleanleaderelections_total") == 4


@pytest.mark.parametrize(
    ("replicas", "adding", "isr", "imbalanced"),
    [((7, 0), (), (0,), 1), ((7, 0), (7,), (0,), 0), ((7, 0), (7,), (0, 7), 1), ((0, 7), (7,), (0,), 0)],
)
def test_a_preferred_replica_that_is_being_added_is_missed_when_it_is_in_sync(
    broker: InProcessBroker,
    scraped: ScrapedBroker,
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    isr: tuple[int, ...],
    imbalanced: int,
) -> None:
    broker.create_topic("t")
    controllership = broker.services.controller.controllership
    assert controllership is not None
    partition, context = TopicPartition("t", 0), controllership.context
    leadership = context.leadership(partition)
    assert leadership is not None
    context.update_assignment(partition, ReplicaAssignment(replicas, adding))
    led = leadership.leader_and_isr._replace(isr=isr)
    context.put_leadership(partition, leadership._replace(leader_and_isr=led))
    assert scraped.scrape().value(f"{CONTROLLER}preferredreplicaimbalancecount") == imbalanced


def test_a_broker_that_is_not_the_controller_has_zeros(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 3)
    broker.services.controller._controllership = None
    found = scraped.scrape()
    for name in ("activecontrollercount", "globalpartitioncount", "offlinepartitionscount", "activebrokercount"):
        assert found.value(f"{CONTROLLER}{name}") == 0, name
    assert found.labels_of("kafka_topic_partitions") == []
    assert found.labels_of("kafka_controller_controllerchannelmanager_queuesize") == []
    assert found.value("kafka_controller_controllerchannelmanager_totalqueuesize") == 0


def test_replicas_that_are_being_deleted(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 3)
    controllership = broker.services.controller.controllership
    assert controllership is not None
    controllership.context.topics_to_be_deleted.add("t")
    first, second, _ = controllership.context.replicas_of_topic("t")
    controllership.replica_states.states[first] = ReplicaState.DELETION_SUCCESSFUL
    controllership.replica_states.states[second] = ReplicaState.DELETION_INELIGIBLE
    found = scraped.scrape()
    assert found.value(f"{CONTROLLER}replicastodeletecount") == 2
    assert found.value(f"{CONTROLLER}replicasineligibletodeletecount") == 1


def test_requests_that_wait_for_brokers(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    controllership = broker.services.controller.controllership
    assert controllership is not None
    times_ms = Histogram()
    times_ms.update(9)
    channel = SimpleNamespace(queue_sizes={2: 3, 1: 4}, queue_times_ms={1: times_ms})
    monkeypatch.setattr(controllership, "channel", channel)
    found = scraped.scrape()
    assert found.value("kafka_controller_controllerchannelmanager_queuesize", broker_id="1") == 4
    assert found.value("kafka_controller_controllerchannelmanager_totalqueuesize") == 7
    waited = "kafka_controller_controllerchannelmanager_requestrateandqueuetimems"
    assert found.value(waited, broker_id="1", quantile="0.99") == 9
    monkeypatch.undo()


def test_requests_to_zookeeper(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    assert scraped.scrape().labels_of(name) == [], "there is no ZooKeeper"
    latency_ms = Histogram()
    latency_ms.update(7)
    monkeypatch.setattr(broker.services.controller._tree, "latency_ms", latency_ms, raising=False)
    found = scraped.scrape()
    assert found.value(name, quantile="0.50") == 7
    assert found.value(f"{name}_count") == 1


def test_each_event_has_a_state() -> None:
    """AllocateProducerIds is Idle in Kafka too."""
    known = {event for _, kinds in STATES.values() for event in kinds} | {events.AllocateProducerIds}
    kinds = {one for name, one in inspect.getmembers(events, inspect.isclass) if hasattr(one, "__match_args__")}
    assert {one for one in kinds if one.__module__ == events.__name__} <= known


def test_events_of_the_session_with_zookeeper(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "kafka_server_sessionexpirelistener_zookeeperexpires_total"
    assert scraped.scrape().value(name) == 0, "there is no ZooKeeper"
    tree = broker.services.controller._tree
    monkeypatch.setattr(tree, "session_events", {"Expires": 2, "SyncConnects": 3}, raising=False)
    found = scraped.scrape()
    assert found.value(name) == 2
    assert found.value("kafka_server_sessionexpirelistener_zookeepersyncconnects_total") == 3
    assert found.value("kafka_server_sessionexpirelistener_zookeeperdisconnects_total") == 0
