from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.in_process.scraping import ScrapedBroker, produce
from tests.support.wire.requests import batch, build


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    limits = {"odradek.metrics.max.groups": "2", "odradek.metrics.max.partitions": "5"}
    with in_process_broker(tmp_path, {"odradek.metrics.listener": "0", **limits}) as broker:
        yield broker


def commit(broker: InProcessBroker, group: str, topic: str, partition: int, offset: int) -> None:
    if not broker.services.metadata_cache.contains("__consumer_offsets"):
        broker.create_topic("__consumer_offsets", 2)
    offsets = [{"partition_index": partition, "committed_offset": offset}]
    request = build(
        ApiKey.OFFSET_COMMIT,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": offsets}],
    )
    response = broker.call(request, 8)
    assert response.topics[0].partitions[0].error_code == 0  # type: ignore[attr-defined]


def test_offsets_of_partitions_and_lag_of_groups(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    broker.create_topic("t", 2)
    produce(broker, "t", batch(b"1", b"2", b"3"))
    produce(broker, "t", batch(b"1", b"2"), partition=1)
    commit(broker, "g", "t", 0, 1)
    commit(broker, "g", "t", 1, 0)
    broker.create_topic("gone")
    commit(broker, "g", "gone", 0, 5)
    broker.services.replica_manager.partitions.forget(TopicPartition("gone", 0))
    found = scraped.scrape()
    assert found.value("kafka_topic_partitions", topic="t") == 2
    labels = {"topic": "t", "partition": "0"}
    assert found.value("kafka_topic_partition_current_offset", **labels) == 3
    assert found.value("kafka_topic_partition_oldest_offset", **labels) == 0
    assert found.value("kafka_topic_partition_in_sync_replica", **labels) == 1
    assert found.value("kafka_topic_partition_leader", **labels) == 0
    assert found.value("kafka_topic_partition_leader_is_preferred", **labels) == 1
    assert found.value("kafka_consumergroup_current_offset", consumergroup="g", **labels) == 1
    assert found.value("kafka_consumergroup_lag", consumergroup="g", **labels) == 2
    assert found.value("kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 4
    assert found.value("kafka_consumergroup_current_offset_sum", consumergroup="g", topic="t") == 1
    assert found.value("kafka_consumergroup_members", consumergroup="g") == 0
    assert found.value("kafka_consumergroup_current_offset", consumergroup="g", topic="gone", partition="0") == 5
    assert {labels["topic"] for labels in found.labels_of("kafka_consumergroup_lag")} == {"t"}
    assert found.value("kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
    assert found.value("kafka_coordinator_group_groupmetadatamanager_numgroupsempty") == 1
    assert found.value("kafka_coordinator_group_groupmetadatamanager_numoffsets") == 3


def test_too_many_groups_or_partitions_are_left_out_and_that_is_said(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    broker.create_topic("t", 3)
    for number in range(3):
        found = scraped.scrape()
        assert found.value("odradek_metrics_left_out", series="groups") == 0
        commit(broker, f"g{number}", "t", 0, 0)
    found = scraped.scrape()
    assert found.value("odradek_metrics_left_out", series="groups") == 1
    assert found.labels_of("kafka_consumergroup_lag") == found.labels_of("kafka_consumergroup_members") == []
    assert found.value("odradek_metrics_left_out", series="partitions") == 0
    assert len(found.labels_of("kafka_log_log_size")) == 5
    broker.create_topic("u")
    found = scraped.scrape()
    assert found.value("odradek_metrics_left_out", series="partitions") == 1
    for name in ("kafka_log_log_size", "kafka_topic_partition_leader", "kafka_cluster_partition_underreplicated"):
        assert found.labels_of(name) == []
    assert found.value("kafka_server_replicamanager_partitioncount") == 6
