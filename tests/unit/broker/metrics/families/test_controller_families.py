from __future__ import annotations

import inspect

import pytest

from odradek.broker.metrics.families.controller_families import STATES
from odradek.controller import events
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


def test_a_broker_that_is_not_the_controller_has_zeros(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 3)
    broker.services.controller._controllership = None
    found = scraped.scrape()
    for name in ("activecontrollercount", "globalpartitioncount", "offlinepartitionscount", "activebrokercount"):
        assert found.value(f"{CONTROLLER}{name}") == 0, name
    assert found.labels_of("kafka_topic_partitions") == []


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
