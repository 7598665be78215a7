from __future__ import annotations

from odradek.broker.tools.admin.transactions.transaction_requests import describe_transactions, list_transactions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.support.clusters.admin_cluster import AdminCluster, outcome
from tests.support.clusters.admin_transactions import AdminTransactions


def test_all_brokers_are_asked_for_their_transactions(cluster: AdminCluster, transactions: AdminTransactions) -> None:
    transactions.has("b", 2)
    transactions.has("a", 1)
    (listed,) = outcome(lambda client: list_transactions(client, longer_than_ms=5))
    assert [(broker_id, found.transactional_id) for broker_id, found in listed] == [(1, "a"), (1, "b")]
    asked = cluster.requests(ListTransactionsRequest)
    assert [(broker_id, request.duration_filter) for broker_id, request in asked] == [(1, 5), (2, 5), (3, 5)]


def test_an_error_of_a_broker_ends_the_listing(cluster: AdminCluster, transactions: AdminTransactions) -> None:
    ending = ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    cluster.on(ListTransactionsRequest, lambda broker_id, request: ending)
    assert outcome(list_transactions, status=1) == []
    assert len(cluster.requests(ListTransactionsRequest)) == 3


def test_a_coordinator_that_is_loading_is_asked_again(cluster: AdminCluster) -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]
    cluster.racks = {1: None}
    cluster.on(ListTransactionsRequest, lambda broker_id, request: ListTransactionsResponse(error_code=codes.pop(0)))
    assert outcome(list_transactions) == [[]]
    assert len(cluster.requests(ListTransactionsRequest)) == 2


def test_an_id_that_is_not_known_has_an_error(transactions: AdminTransactions) -> None:
    transactions.has("a", 1)
    (found,) = outcome(lambda client: describe_transactions(client, ["a", "nope"]))
    assert (found["a"].error_code, found["a"].broker_id) == (0, 1)
    assert found["nope"].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
