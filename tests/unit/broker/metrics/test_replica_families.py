from __future__ import annotations

import pytest

from odradek.controller.model.leader_and_isr import LeaderAndIsr
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker, produce

MANAGER = "kafka_server_replicamanager_"


def test_partitions_and_their_logs(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 2)
    produce(broker, "t", partition=1)
    found = scraped.scrape()
    assert found.value(f"{MANAGER}partitioncount") == found.value(f"{MANAGER}leadercount") == 2
    assert found.value(f"{MANAGER}underreplicatedpartitions") == 0
    assert found.value(f"{MANAGER}atminisrpartitioncount") == 2
    labels = {"topic": "t", "partition": "1"}
    assert found.value("kafka_log_log_logendoffset", **labels) == 1
    assert found.value("kafka_log_log_size", **labels) > 0
    assert found.value("kafka_log_log_numlogsegments", **labels) == 1
    assert found.value("kafka_cluster_partition_insyncreplicascount", **labels) == 1
    assert found.value("kafka_cluster_partition_replicascount", **labels) == 1
    assert found.value("kafka_cluster_partition_underminisr", **labels) == 0
    assert found.value("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 0


def test_a_partition_with_a_dead_follower_is_under_replicated_and_below_its_minimum(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t", configs={"min.insync.replicas": "2"})
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    partition.in_sync.update_assignment_and_isr([0, 7], [0])
    partition.is_reassigning = True
    found = scraped.scrape()
    for name in ("underreplicatedpartitions", "underminisrpartitioncount", "reassigningpartitions"):
        assert found.value(f"{MANAGER}{name}") == 1, name
    assert found.value("kafka_cluster_partition_underreplicated", topic="t", partition="0") == 1
    assert found.value("kafka_topic_partition_under_replicated_partition", topic="t", partition="0") == 1


def test_changes_of_an_isr_are_counted_when_the_controller_has_answered(
    broker: InProcessBroker, scraped: ScrapedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t")
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    monkeypatch.setattr(type(partition.environment.alter_partition), "submit", lambda manager, item: None)
    in_sync = partition.in_sync
    in_sync.update_assignment_and_isr([0, 7], [0, 7])
    for answer in (ErrorCode.INELIGIBLE_REPLICA, LeaderAndIsr(leader=0, isr=(0,), leader_epoch=0, partition_epoch=9)):
        in_sync.maybe_shrink_isr()
        in_sync._answered(in_sync.state, answer)  # type: ignore[arg-type]
    found = scraped.scrape()
    assert found.value(f"{MANAGER}isrshrinks_total") == 1
    assert found.value(f"{MANAGER}isrexpands_total") == 0
    assert found.value(f"{MANAGER}failedisrupdates_total") == 1
