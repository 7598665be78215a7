from __future__ import annotations

import pytest

from odradek.broker.tools.admin.transactions.producer_states import describe_producers
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, outcome, topic
from tests.support.clusters.admin_transactions import AdminTransactions, producer

T0 = TopicPartition("t", 0)


def test_the_leader_or_a_certain_broker_is_asked(cluster: AdminCluster, transactions: AdminTransactions) -> None:
    cluster.has(topic("t", [1, 2]))
    transactions.producers[T0] = [producer(5)]
    assert outcome(lambda client: describe_producers(client, [T0])) == [{T0: [producer(5)]}]
    assert outcome(lambda client: describe_producers(client, [T0], 2)) == [{T0: [producer(5)]}]
    assert outcome(lambda client: describe_producers(client, [])) == [{}]
    assert [broker_id for broker_id, _ in cluster.requests(DescribeProducersRequest)] == [1, 2]


def test_a_partition_that_does_not_exist_is_an_error(
    transactions: AdminTransactions, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(lambda client: describe_producers(client, [T0]), status=1) == []
    assert capsys.readouterr().err == (
        "odradek: Failed to describe producers for partition t-0 on leader: "
        "This server does not host this topic-partition.\n"
    )
