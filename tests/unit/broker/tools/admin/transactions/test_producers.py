from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.transactions.producers import main
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_transactions import AdminTransactions, producer


@pytest.fixture(autouse=True)
def some_producers(cluster: AdminCluster, transactions: AdminTransactions) -> None:
    cluster.has(topic("t", [1], [2, 3]), topic("u", [3]))
    transactions.producers = {
        TopicPartition("t", 0): [producer(5), producer(6, start=40)],
        TopicPartition("u", 0): [producer(7)],
    }


def test_producers_of_partitions(command: Command) -> None:
    status, lines, _ = command(main, "--topic", "t:0", "--topic", "u")
    assert status == 0
    assert [[cell.strip() for cell in line.split("\t")[:-1]] for line in lines] == [
        [
            "Topic",
            "Partition",
            "ProducerId",
            "ProducerEpoch",
            "LatestCoordinatorEpoch",
            "LastSequence",
            "LastTimestamp",
            "CurrentTransactionStartOffset",
        ],
        ["t", "0", "5", "2", "-1", "7", "1000", "None"],
        ["t", "0", "6", "2", "-1", "7", "1000", "40"],
        ["u", "0", "7", "2", "-1", "7", "1000", "None"],
    ]


def test_those_with_an_open_transaction_in_all_partitions(command: Command) -> None:
    (row,) = json.loads("".join(command(main, "--all-topics", "--open", "--json")[1]))
    assert row == {
        "topic": "t",
        "partition": 0,
        "producer_id": 6,
        "producer_epoch": 2,
        "coordinator_epoch": -1,
        "last_sequence": 7,
        "last_timestamp": 1_000,
        "transaction_start_offset": 40,
    }


def test_one_broker_is_asked_about_its_replicas(command: Command, cluster: AdminCluster) -> None:
    command(main, "--all-topics", "--broker-id", "3")
    ((broker_id, request),) = cluster.requests(DescribeProducersRequest)
    assert (broker_id, [(topic.name, topic.partition_indexes) for topic in request.topics]) == (
        3,
        [("t", [1]), ("u", [0])],
    )
