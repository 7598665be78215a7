"""Settings of the configuration reach the coordinators."""

from __future__ import annotations

from pathlib import Path

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.wire.requests import build

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
        assert broker.services.metadata_cache.partition_count("__transaction_state") == 3
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


def test_groups(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, SETTINGS) as broker:
        assert broker.services.group_coordinator._config.group_min_session_timeout_ms == 77
