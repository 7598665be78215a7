from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.transactions.transactions import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_transactions import AdminTransactions, producer


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("\t")[:-1]] for line in lines]


def test_transactions_are_listed(command: Command, transactions: AdminTransactions) -> None:
    transactions.has("a", 5)
    assert cells(command(main, "list")[1]) == [
        ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"],
        ["a", "1", "5", "Ongoing"],
    ]


def test_options_of_the_client_stand_on_either_side(command: Command, transactions: AdminTransactions) -> None:
    rows = json.loads("".join(command(main, "--json", "list")[1]))
    assert rows == json.loads("".join(command(main, "list", "--json")[1])) == []
    with pytest.raises(SystemExit, match="2"):
        command(main)


def test_a_transaction_is_described(command: Command, transactions: AdminTransactions) -> None:
    transactions.has("a", 5, t=[10, 2], s=[0])
    transactions.has("empty", 6, state="Empty")
    header, row = cells(command(main, "describe", "--transactional-id", "a")[1])
    described = dict(zip(header, row, strict=True))
    assert int(described.pop("TransactionDurationMs")) > 1_000_000_000_000
    assert described == {
        "CoordinatorId": "1",
        "TransactionalId": "a",
        "ProducerId": "5",
        "ProducerEpoch": "2",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "60000",
        "CurrentTransactionStartTimeMs": "1000",
        "TopicPartitions": "s-0,t-2,t-10",
    }
    assert cells(command(main, "describe", "--transactional-id", "empty")[1])[1][6:] == ["None", "None", ""]
    status, _, error = command(main, "describe", "--transactional-id", "nope")
    assert (status, error.startswith("odradek: Failed to describe transaction state of transactional-id `nope`: ")) == (
        1,
        True,
    )


def test_producers_of_a_partition(command: Command, cluster: AdminCluster, transactions: AdminTransactions) -> None:
    cluster.has(topic("t", [1, 2]))
    transactions.producers[TopicPartition("t", 0)] = [producer(5, start=40)]
    which = ("describe-producers", "--topic", "t", "--partition", "0")
    assert cells(command(main, *which)[1])[1] == ["5", "2", "-1", "7", "1000", "40"]
    assert cells(command(main, *which, "--broker-id", "2")[1])[1] == ["5", "2", "-1", "7", "1000", "40"]


def test_a_producer_is_fenced(command: Command, cluster: AdminCluster, transactions: AdminTransactions) -> None:
    assert command(main, "forceTerminateTransaction", "--transactional-id", "a") == (0, [], "")
    ((broker_id, request),) = cluster.requests(InitProducerIdRequest)
    assert (broker_id, request.transactional_id, request.producer_id) == (1, "a", -1)
    transactions.error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    status, _, error = command(main, "forceTerminateTransaction", "--transactional-id", "a")
    assert (status, "Failed to force terminate transactional-id `a`: " in error) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["describe"],
        ["describe-producers", "--topic", "t"],
        ["abort", "--topic", "t", "--partition", "0"],
        ["abort", "--topic", "t", "--partition", "0", "--producer-id", "1", "--producer-epoch", "1"],
        ["find-hanging"],
        ["find-hanging", "--broker-id", "1", "--partition", "0"],
        ["list", "--duration-filter", "x"],
    ],
)
def test_arguments_that_are_not_valid_are_refused(arguments: list[str], command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(main, *arguments)
