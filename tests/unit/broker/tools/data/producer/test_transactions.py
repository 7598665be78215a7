from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.data.producer.producer_state import ProducerState
from odradek.broker.tools.data.producer.transactions import ProducerFenced, Transactions, init_producer_id
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def answer_adds(cluster: DataCluster, *codes: ErrorCode) -> None:
    left = [*codes]

    def add(broker_id: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        code = left.pop(0)
        results = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    cluster.on(AddPartitionsToTxnRequest, add)


def answer_ends(cluster: DataCluster, *codes: ErrorCode) -> None:
    left = [*codes]
    cluster.on(EndTxnRequest, lambda broker_id, request: EndTxnResponse(error_code=left.pop(0)))


async def begun(cluster: DataCluster) -> Transactions:
    client = cluster.client()
    await client.refresh(())
    transactions = Transactions(client, ProducerState(), "id", 60_000)
    await transactions.init()
    return transactions


@virtual_test
async def test_a_transaction() -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)
    answer_adds(cluster, ErrorCode.NONE)
    answer_ends(cluster, ErrorCode.NONE)
    assert transactions.missing([A, B]) == {A, B}
    await transactions.add_partitions([B, A])
    assert transactions.missing([A, B]) == set()
    (added,) = cluster.requests(AddPartitionsToTxnRequest)
    assert (added.v3_and_below_transactional_id, added.v3_and_below_producer_id) == ("id", 101)
    assert [(topic.name, topic.partitions) for topic in added.v3_and_below_topics] == [("t", [0, 1])]
    await transactions.end(committed=True)
    assert cluster.requests(EndTxnRequest)[0].committed
    assert transactions.missing([A]) == {A}, "the next transaction begins without partitions"


@virtual_test
async def test_a_transaction_without_partitions_is_not_ended() -> None:
    cluster = DataCluster()
    await (await begun(cluster)).end(committed=True)
    assert not cluster.requests(EndTxnRequest)


@virtual_test
async def test_a_coordinator_that_moved_is_looked_for_again() -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)
    answer_adds(cluster, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE)
    await transactions.add_partitions([A])
    assert len(cluster.requests(FindCoordinatorRequest)) == 2


@virtual_test
async def test_a_coordinator_that_does_not_answer_is_looked_for_again() -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)
    answer_adds(cluster, ErrorCode.NONE)
    await transactions.add_partitions([A])
    failures = [ConnectionResetError("gone"), None]

    def end(broker_id: int, request: EndTxnRequest) -> EndTxnResponse:
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        return EndTxnResponse()

    cluster.on(EndTxnRequest, end)
    await transactions.end(committed=True)
    assert len(cluster.requests(FindCoordinatorRequest)) == 2
    assert [request.committed for request in cluster.requests(EndTxnRequest)] == [True, True]


@virtual_test
async def test_a_commit_whose_answer_is_lost_is_not_turned_into_an_abort() -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)
    answer_adds(cluster, ErrorCode.NONE)
    await transactions.add_partitions([A])
    answer_ends(cluster, ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
    with pytest.raises(CommandFailed, match="EndTxn"):
        await transactions.end(committed=True)
    await transactions.end(committed=False)
    assert [request.committed for request in cluster.requests(EndTxnRequest)] == [True, True]


@virtual_test
@pytest.mark.parametrize("answer", [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE])
async def test_an_abort_is_sent_if_partitions_may_have_been_added(answer: ErrorCode) -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)

    def lose(broker_id: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        raise ConnectionResetError("the answer is lost")

    cluster.on(AddPartitionsToTxnRequest, lose)
    with pytest.raises(CommandFailed, match="AddPartitionsToTxn took more than"):
        await transactions.add_partitions([A])
    answer_ends(cluster, answer)
    await transactions.end(committed=False)
    assert [request.committed for request in cluster.requests(EndTxnRequest)] == [False]
    await transactions.end(committed=False)
    assert len(cluster.requests(EndTxnRequest)) == 1, "it is over"


@virtual_test
async def test_an_abort_of_added_partitions_that_is_refused_is_an_error() -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)
    answer_adds(cluster, ErrorCode.NONE)
    await transactions.add_partitions([A])
    answer_ends(cluster, ErrorCode.INVALID_TXN_STATE)
    with pytest.raises(CommandFailed, match="EndTxn"):
        await transactions.end(committed=False)


@virtual_test
async def test_a_fenced_producer() -> None:
    cluster = DataCluster()
    transactions = await begun(cluster)
    answer_adds(cluster, ErrorCode.PRODUCER_FENCED)
    with pytest.raises(ProducerFenced, match="newer producer with the same transactionalId"):
        await transactions.add_partitions([A])


@virtual_test
async def test_it_gives_up_in_the_end() -> None:
    cluster = DataCluster()
    cluster.on(
        InitProducerIdRequest,
        lambda broker_id, request: InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    )
    with pytest.raises(CommandFailed, match="InitProducerId took more than 60000 ms: The coordinator is loading"):
        await begun(cluster)


@virtual_test
async def test_an_id_without_transactions() -> None:
    cluster, state = DataCluster(), ProducerState()
    await init_producer_id(cluster.client(), state)
    assert (state.producer_id, state.epoch) == (101, 0)
    assert cluster.requests(InitProducerIdRequest)[0].transactional_id is None
