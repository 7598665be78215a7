from __future__ import annotations

import json
import sys

import pytest

from odradek.broker.tools.admin.transactions.transactions import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_transactions import AdminTransactions, producer

HANGING, FORGOTTEN, MOVED_ON, ALIVE, YOUNG, IDLE = 1, 2, 3, 4, 5, 6


@pytest.fixture(autouse=True)
def some_transactions(cluster: AdminCluster, transactions: AdminTransactions) -> None:
    cluster.has(topic("t", [1, 3], [2]), topic("u", [3]))
    transactions.producers[TopicPartition("t", 0)] = [
        *(producer(producer_id, start=10 * producer_id) for producer_id in (HANGING, FORGOTTEN, MOVED_ON, ALIVE)),
        producer(YOUNG, start=50, timestamp=sys.maxsize),
        producer(IDLE),
    ]
    transactions.has("moved-on", MOVED_ON, u=[0])
    transactions.has("alive", ALIVE, t=[0])


def test_transactions_that_no_coordinator_will_end_are_found(command: Command) -> None:
    rows = json.loads("".join(command(main, "find-hanging", "--topic", "t", "--json")[1]))
    assert [row["producer_id"] for row in rows] == [HANGING, FORGOTTEN, MOVED_ON]
    assert (rows[0]["topic"], rows[0]["partition"], rows[0]["start_offset"]) == ("t", 0, 10)
    assert command(main, "find-hanging", "--topic", "t", "--partition", "1", "--json")[1] == ["[]"]
    _, lines, _ = command(main, "find-hanging", "--broker-id", "3")
    assert len(lines) == 4
    assert lines[0].split("\t")[-2] == "Duration(min)"
    assert command(main, "find-hanging", "--topic", "nope")[0] == 1


@pytest.mark.parametrize(
    ("which", "epoch"),
    [
        (["--start-offset", "10"], 0),
        (["--producer-id", "1", "--producer-epoch", "2", "--coordinator-epoch", "-1"], 0),
        (["--producer-id", "1", "--producer-epoch", "2", "--coordinator-epoch", "6"], 6),
    ],
)
def test_the_leader_writes_an_abort_marker(
    which: list[str], epoch: int, command: Command, cluster: AdminCluster
) -> None:
    assert command(main, "abort", "--topic", "t", "--partition", "0", *which) == (0, [], "")
    ((broker_id, request),) = cluster.requests(WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert (broker_id, marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (1, 1, 2, epoch)
    assert not marker.transaction_result
    assert [(found.name, found.partition_indexes) for found in marker.topics] == [("t", [0])]


def test_what_cannot_be_aborted_is_an_error(command: Command, transactions: AdminTransactions) -> None:
    which = ("abort", "--topic", "t", "--partition", "0", "--start-offset")
    assert command(main, *which, "11") == (
        1,
        [],
        "odradek: Could not find any open transactions starting at offset 11 on partition t-0\n",
    )
    transactions.error = ErrorCode.INVALID_PRODUCER_EPOCH
    status, _, error = command(main, *which, "10")
    assert (status, error.startswith("odradek: Failed to abort transaction of producer 1 in t-0: ")) == (1, True)
