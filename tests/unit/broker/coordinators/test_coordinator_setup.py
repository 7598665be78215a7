"""Settings of the configuration reach the coordinators."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker, no_bugs_logged
from tests.support.wire.requests import build
from tests.unit.broker.apis.groups.test_offset_commit import commit, committed, find_coordinator

SETTINGS = {
    "group.min.session.timeout.ms": "77",
    "transaction.max.timeout.ms": "1234",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transactional.id.expiration.ms": "60000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}


def init(broker: InProcessBroker, timeout_ms: int) -> ErrorCode:
    request = build(ApiKey.INIT_PRODUCER_ID, transactional_id="id", transaction_timeout_ms=timeout_ms)
    return ErrorCode(broker.call(request, 4).error_code)  # type: ignore[attr-defined]


def ready(broker: InProcessBroker) -> bool:
    request = build(ApiKey.FIND_COORDINATOR, key="id", key_type=1)
    return broker.call(request, 2).error_code == ErrorCode.NONE  # type: ignore[attr-defined, no-any-return]


def state(broker: InProcessBroker) -> str:
    request = build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=["id"])
    (found,) = broker.call(request, 0).transaction_states  # type: ignore[attr-defined]
    return found.transaction_state or ErrorCode(found.error_code).name


def test_transactions(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, SETTINGS) as broker:
        assert not ready(broker)
        assert broker.settle(lambda: broker.services.metadata_cache.contains("__transaction_state"))
        assert ready(broker)
        assert len(broker.services.metadata_cache.snapshot.partitions["__transaction_state"]) == 3
        assert init(broker, 1235) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert init(broker, 1234) == ErrorCode.NONE
        broker.create_topic("t")
        topics = [{"name": "t", "partitions": [0]}]
        who = {"v3_and_below_transactional_id": "id", "v3_and_below_producer_id": 0, "v3_and_below_producer_epoch": 0}
        broker.call(build(ApiKey.ADD_PARTITIONS_TO_TXN, **who, v3_and_below_topics=topics), 3)
        assert state(broker) == "Ongoing"
        for _ in range(4):
            broker.advance(500)
        assert state(broker) == "CompleteAbort"
        for _ in range(62):
            broker.advance(1000)
        assert state(broker) == "TRANSACTIONAL_ID_NOT_FOUND"


def init_with_producer(broker: InProcessBroker) -> tuple[int, int]:
    """(producer id, epoch) of the transactional id "id"."""
    if not ready(broker):
        assert broker.settle(lambda: broker.services.metadata_cache.contains("__transaction_state"))
    response = broker.call(build(ApiKey.INIT_PRODUCER_ID, transactional_id="id", transaction_timeout_ms=1000), 4)
    assert response.error_code == ErrorCode.NONE  # type: ignore[attr-defined]
    return response.producer_id, response.producer_epoch  # type: ignore[attr-defined]


@pytest.mark.parametrize(("number_before", "number_after"), [("1", "50"), ("7", "1")])
def test_a_transactional_id_is_in_the_partition_where_it_was_written(
    tmp_path: Path, number_before: str, number_after: str
) -> None:
    """The configured number of partitions is for a topic that does not exist yet."""
    key = "transaction.state.log.num.partitions"
    with in_process_broker(tmp_path, {key: number_before}) as broker:
        producer_id, epoch = init_with_producer(broker)
        assert init_with_producer(broker) == (producer_id, epoch + 1)
    with in_process_broker(tmp_path, {key: number_after}) as broker:
        assert init_with_producer(broker) == (producer_id, epoch + 2)


@pytest.mark.parametrize(("number_before", "number_after"), [("1", "50"), ("7", "1")])
def test_a_group_is_in_the_partition_where_it_was_written(
    tmp_path: Path, number_before: str, number_after: str
) -> None:
    key = "offsets.topic.num.partitions"
    with in_process_broker(tmp_path, {key: number_before}) as broker:
        broker.create_topic("t")
        find_coordinator(broker)
        assert commit(broker, ("t", 0)) == {("t", 0): ErrorCode.NONE}
    with in_process_broker(tmp_path, {key: number_after}) as broker, no_bugs_logged():
        find_coordinator(broker)
        assert committed(broker, ("t", 0)) == {("t", 0): (ErrorCode.NONE, 42)}
        (result,) = broker.call(build(ApiKey.DELETE_GROUPS, groups_names=["g"]), 2).results  # type: ignore[attr-defined]
        assert result.error_code == ErrorCode.NONE
    with in_process_broker(tmp_path, {key: number_after}) as broker:
        find_coordinator(broker)
        assert committed(broker, ("t", 0)) == {("t", 0): (ErrorCode.NONE, -1)}


def test_groups(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, SETTINGS) as broker:
        assert broker.services.group_coordinator._config.group_min_session_timeout_ms == 77
