"""The handlers of transactions in one broker: what the transcripts of Apache Kafka cannot show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, in_process_broker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path_factory.mktemp("broker")) as made:
        made.create_topic("__transaction_state", 2, configs={"cleanup.policy": "compact"})
        yield made


def init(broker: InProcessBroker, name: str, version: int = 4) -> Any:
    return broker.call(build(ApiKey.INIT_PRODUCER_ID, transactional_id=name, transaction_timeout_ms=1000), version)


def test_a_request_for_no_transactions_is_answered(broker: InProcessBroker) -> None:
    """Apache Kafka never answers an empty batch of transactions."""
    answer: Any = broker.call(build(ApiKey.ADD_PARTITIONS_TO_TXN), 5)
    assert (answer.error_code, answer.results_by_transaction) == (NONE, [])


def test_many_transactions_in_one_request(broker: InProcessBroker) -> None:
    broker.create_topic("t", 2)
    topics = [{"name": "t", "partitions": [0, 1]}]
    transactions = []
    for name in ("first", "second"):
        producer = init(broker, name)
        who = {"transactional_id": name, "producer_id": producer.producer_id, "producer_epoch": 0}
        transactions.append({**who, "verify_only": name == "second", "topics": topics})
    answer: Any = broker.call(build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=transactions), 4)
    found = {
        result.transactional_id: [part.partition_error_code for part in result.topic_results[0].results_by_partition]
        for result in answer.results_by_transaction
    }
    assert found == {"first": [NONE, NONE], "second": [ErrorCode.TRANSACTION_ABORTABLE] * 2}


def test_only_brokers_may_add_internal_topics(broker: InProcessBroker) -> None:
    broker.create_topic("beside", 1)
    producer = init(broker, "adds")
    topics = [{"name": "beside", "partitions": [0]}, {"name": "__transaction_state", "partitions": [1]}]
    who = {"transactional_id": "adds", "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    old = {f"v3_and_below_{name}": value for name, value in {**who, "topics": topics}.items()}
    answer: Any = broker.call(build(ApiKey.ADD_PARTITIONS_TO_TXN, **old), 3)
    errors = [topic.results_by_partition[0].partition_error_code for topic in answer.results_by_topic_v3_and_below]
    assert errors == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    answer = broker.call(build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[{**who, "topics": topics}]), 4)
    (result,) = answer.results_by_transaction
    assert [topic.results_by_partition[0].partition_error_code for topic in result.topic_results] == [NONE, NONE]


@pytest.mark.parametrize(
    ("version", "told"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_gets_the_error_code_that_its_version_knows(
    broker: InProcessBroker, version: int, told: ErrorCode
) -> None:
    producer = init(broker, "fenced")
    init(broker, "fenced")
    mine = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    request = build(ApiKey.INIT_PRODUCER_ID, transactional_id="fenced", transaction_timeout_ms=1000, **mine)
    answer: Any = broker.call(request, version)
    assert answer.error_code == told


def test_the_end_of_a_transaction_is_answered_in_the_call_that_brings_it(broker: InProcessBroker) -> None:
    """Neither a turn of the event loop nor a tick of the timer lies between the request and its answer."""
    broker.create_topic("ended")
    producer = init(broker, "ends")
    who = {"transactional_id": "ends", "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    added = {**who, "topics": [{"name": "ended", "partitions": [0]}], "verify_only": False}
    broker.call(build(ApiKey.ADD_PARTITIONS_TO_TXN, transactions=[added]), 4)
    frame = broker.frame(build(ApiKey.END_TXN, committed=True, **who), 3)
    connection = FakeConnection()

    async def dispatch() -> list[Any]:
        broker.dispatch(connection, memoryview(frame), broker.clock.monotonic_ms())
        return list(connection.answers.values())

    (answer,) = broker.run(dispatch())
    assert answer.error_code == NONE


def test_a_marker_without_a_producer_id_is_refused_before_others_are_written(broker: InProcessBroker) -> None:
    broker.create_topic("marked")
    topics = [{"name": "marked", "partition_indexes": [0]}]
    good = {"producer_id": 5, "producer_epoch": 0, "transaction_result": True, "topics": topics}
    request = build(ApiKey.WRITE_TXN_MARKERS, markers=[good, {**good, "producer_id": -1}])
    answer: Any = broker.call(request, 1)
    errors = {part.error_code for found in answer.markers for topic in found.topics for part in topic.partitions}
    assert errors == {ErrorCode.UNKNOWN_SERVER_ERROR}
    asked = [{"name": "marked", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    latest: Any = broker.call(build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=asked), 7)
    assert latest.topics[0].partitions[0].offset == 0


@pytest.mark.parametrize("topics", [[], [{"name": "named", "partition_indexes": []}]])
def test_a_marker_that_names_no_partition_is_not_in_the_answer(broker: InProcessBroker, topics: list[Any]) -> None:
    empty = {"producer_id": 5, "producer_epoch": 0, "transaction_result": True, "topics": topics}
    answer: Any = broker.call(build(ApiKey.WRITE_TXN_MARKERS, markers=[empty]), 1)
    assert answer.markers == []
    some = {**empty, "producer_id": 6, "topics": [{"name": "named", "partition_indexes": [0]}]}
    answer = broker.call(build(ApiKey.WRITE_TXN_MARKERS, markers=[empty, some, {**some, "topics": topics}]), 1)
    ((producer_id, partitions),) = [(found.producer_id, found.topics[0].partitions) for found in answer.markers]
    assert producer_id == 6
    errors = [(found.partition_index, found.error_code) for found in partitions]
    assert errors == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
