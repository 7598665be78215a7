"""The partitions that a broker hosts, and its errors for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.partition.hosted_partitions import HostedPartitions
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.support.in_process.replication.replicas import TOPIC_ID, TP, Replicas


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


@pytest.fixture
def partitions(replicas: Replicas) -> HostedPartitions:
    return replicas.manager.partitions


def refusal(partitions: HostedPartitions) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        partitions.partition(TP)
    assert partitions.hosted(TP) is None
    assert not list(partitions.online_partitions())
    return raised.value.code


def test_an_unknown_partition(partitions: HostedPartitions) -> None:
    assert refusal(partitions) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_of_other_brokers(replicas: Replicas, partitions: HostedPartitions) -> None:
    replicas.know(TP, leader=5, replicas=[5])
    assert refusal(partitions) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_from_its_creation_to_its_end(partitions: HostedPartitions) -> None:
    created = partitions.create(TP)
    assert partitions.partition(TP) is partitions.hosted(TP) is created
    assert list(partitions.online_partitions()) == [created]
    partitions.forget(TP)
    assert refusal(partitions) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_whose_directory_has_failed(replicas: Replicas, partitions: HostedPartitions) -> None:
    replicas.lead()
    hosted = partitions.partition(TP)
    partitions.take_offline(TP)
    assert refusal(partitions) == ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions.is_offline(TP)
    assert hosted.log is None, "it is closed"
    partitions.forget(TP)
    assert not partitions.is_offline(TP)


def test_a_topic_id_has_to_be_that_of_the_log(replicas: Replicas, partitions: HostedPartitions) -> None:
    created = partitions.create(TP)
    assert partitions.partition_of_topic(TP, b"?" * 16) is created, "there is no log with another id"
    replicas.lead()
    for topic_id in (TOPIC_ID, ZERO_UUID):
        assert partitions.partition_of_topic(TP, topic_id) is created
    with pytest.raises(KafkaError) as raised:
        partitions.partition_of_topic(TP, b"?" * 16)
    assert raised.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


class Noting:
    def __init__(self) -> None:
        self.told = 0

    def has_news(self) -> None:
        self.told += 1


def test_announcements_and_the_end_wake_readers(partitions: HostedPartitions) -> None:
    created, reader = partitions.create(TP), Noting()
    created.news.subscribe(reader)
    partitions.announce([TP])
    assert reader.told == 1
    created.news.subscribe(reader)
    partitions.forget(TP)
    assert reader.told == 2
    partitions.announce([TP])  # hosted no longer
