"""Transactions over the end of the broker: open ones go on, decided ones are finished, and the accounts balance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.bank.bank_run import survive
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

NewBroker = Callable[..., Broker]


def described(broker: Broker, transactional_id: str) -> Any:
    with RawClient(broker.host, broker.port) as client:
        answer: Any = client.call(build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[transactional_id]), 0)
    return answer.transaction_states[0]


@pytest.mark.parametrize(("ending", "committed"), [("stop", False), ("kill", True)])
def test_an_open_transaction_goes_on(new_broker: NewBroker, ending: str, committed: bool) -> None:
    broker = new_broker()
    topic = Admin(broker.bootstrap).create_topic("open", 1, {"segment.bytes": "1000"})
    client = ConfluentTransactions()
    producer = client.producer(broker.bootstrap, "id", 60_000)
    producer.begin()
    producer.send(topic, "before")
    getattr(broker, ending)()
    broker.start()
    assert client.read(broker.bootstrap, topic, "read_committed") == []
    eventually(lambda: described(broker, "id"), accept=lambda state: state.transaction_state == "Ongoing")
    producer.send(topic, "after")
    if committed:
        producer.commit()
    else:
        producer.abort()
    eventually(lambda: described(broker, "id"), accept=lambda state: state.transaction_state.startswith("Complete"))
    getattr(broker, ending)()
    broker.start()
    wanted = [(0, "before"), (1, "after")]
    assert client.read(broker.bootstrap, topic, "read_committed") == (wanted if committed else [])
    assert client.read(broker.bootstrap, topic, "read_uncommitted") == wanted
    producer.close()


def test_a_late_commit_of_offsets_takes_nothing_out(broker: Broker, unique: Callable[[str], str]) -> None:
    """It comes from an earlier life of the producer and is refused. In Apache Kafka the transaction is committed
    without the offsets that were in it before: pending ones are kept by producer id.
    """
    transactional_id, group = unique("id"), unique("group")
    topic = Admin(broker.bootstrap).create_topic(unique("source"))
    with RawClient(broker.host, broker.port) as client:

        def call(api_key: ApiKey, version: int, **fields: object) -> Any:
            return client.call(build(api_key, **fields), version)

        def begin() -> Any:
            return call(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=60_000)

        def commit(offset: int, epoch: int) -> int:
            partitions = [{"partition_index": 0, "committed_offset": offset}]
            topics = [{"name": topic, "partitions": partitions}]
            fields = who | {"producer_epoch": epoch, "group_id": group, "topics": topics}
            answer = call(ApiKey.TXN_OFFSET_COMMIT, 3, **fields)
            return int(answer.topics[0].partitions[0].error_code)

        def fetched() -> Any:
            topics = [{"name": topic, "partition_indexes": [0]}]
            answer = call(ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=True)
            return answer.topics[0].partitions[0]

        for key_type, key in enumerate((group, transactional_id)):
            eventually(lambda t=key_type, k=key: not call(ApiKey.FIND_COORDINATOR, 2, key=k, key_type=t).error_code)  # type: ignore[misc]
        eventually(begin, accept=lambda answer: answer.error_code == 0)
        given = begin()
        assert (given.error_code, given.producer_epoch) == (0, 1)
        who = {"transactional_id": transactional_id, "producer_id": given.producer_id, "producer_epoch": 1}
        assert call(ApiKey.ADD_OFFSETS_TO_TXN, 3, **who, group_id=group).error_code == 0
        assert eventually(lambda: commit(5, epoch=1), accept=lambda error: error != ErrorCode.NOT_COORDINATOR) == 0
        assert commit(3, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert call(ApiKey.END_TXN, 3, **who, committed=True).error_code == 0
        found = eventually(fetched, accept=lambda partition: partition.error_code == 0)
        assert found.committed_offset == (5 if broker.target == "odradek" else -1)


def test_the_books_balance_under_kills_and_a_bad_network(
    make_broker: Callable[[Path, dict[str, str]], Broker], tmp_path: Path, target: str
) -> None:
    """Tellers whose transactions were cut off start anew; what was left open times out, and readers go on."""
    survive(
        lambda settings: make_broker(tmp_path, settings),
        tellers=3,
        transfers=60,
        kills=3,
        seed=5,
        late_offsets=target == "odradek",
    )
