"""Transactions as applications have them: commit and abort, consume-transform-produce, fencing, time-outs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from tests.support.broker import Broker
from tests.support.loads.transactional_clients import (
    AiokafkaTransactions,
    ConfluentTransactions,
    JavaTransactions,
    KafkaPythonTransactions,
    TransactionalClient,
    TransactionalProducer,
    TransactionFailedError,
)
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
NAMES = ("java", "confluent", "kafka-python", "aiokafka")
MAX_TRANSACTION_MS = 900_000
"""Apache's `transaction.max.timeout.ms`: however slow the readers are, the transaction is open."""


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, TransactionalClient]]:
    java = JavaTransactions()
    yield {
        "java": java,
        "confluent": ConfluentTransactions(),
        "kafka-python": KafkaPythonTransactions(),
        "aiokafka": AiokafkaTransactions(),
    }
    java.close()


@pytest.fixture
def new_topic(broker: Broker, unique: Callable[[str], str]) -> Callable[[str], str]:
    def create(stem: str) -> str:
        topic = unique(stem)
        new = {"name": topic, "num_partitions": 1, "replication_factor": 1}
        with RawClient(broker.host, broker.port) as client:
            client.call(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
        return topic

    return create


NewProducer = Callable[..., TransactionalProducer]


@pytest.fixture
def new_producer(broker: Broker, clients: dict[str, TransactionalClient]) -> Iterator[NewProducer]:
    """Makes producers of the named client; they are closed whatever has become of them."""
    made: list[TransactionalProducer] = []

    def make(name: str, transactional_id: str, **options: int) -> TransactionalProducer:
        made.append(clients[name].producer(broker.bootstrap, transactional_id, **options))
        return made[-1]

    yield make
    for producer in made:
        with contextlib.suppress(TransactionFailedError):
            producer.close()


def values(read: list[tuple[int, str]]) -> list[str]:
    return [value for _, value in read]


def state_of(broker: Broker, transactional_id: str) -> str:
    with RawClient(broker.host, broker.port) as client:
        answer: Any = client.call(build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[transactional_id]), 0)
    return str(answer.transaction_states[0].transaction_state)


def is_complete(state: str) -> bool:
    return state.startswith("Complete")


@pytest.mark.parametrize("name", NAMES)
def test_commit_and_abort(
    broker: Broker,
    clients: dict[str, TransactionalClient],
    new_producer: NewProducer,
    new_topic: Callable[[str], str],
    unique: Callable[[str], str],
    name: str,
) -> None:
    """Every client reads what this one wrote, as its isolation level has it: nothing behind an open transaction."""
    topic, transactional_id, other_id = new_topic("commits"), unique("id"), unique("other")
    producer = new_producer(name, transactional_id, timeout_ms=MAX_TRANSACTION_MS)
    for committed, found in ((True, "ab"), (False, "cd"), (True, "e"), (False, "f")):
        producer.begin()
        for value in found:
            producer.send(topic, value)
        if committed:
            producer.commit()
        else:
            producer.abort()
    producer.begin()
    producer.send(topic, "open")
    other = new_producer(name, other_id)
    other.begin()
    other.send(topic, "behind")
    other.commit()
    eventually(lambda: state_of(broker, other_id), accept=is_complete)
    for reader in clients.values():
        assert reader.read(broker.bootstrap, topic, COMMITTED) == [(0, "a"), (1, "b"), (6, "e")]
    uncommitted = clients[name].read(broker.bootstrap, topic, UNCOMMITTED)
    assert uncommitted == [(0, "a"), (1, "b"), (3, "c"), (4, "d"), (6, "e"), (8, "f"), (10, "open"), (11, "behind")]
    producer.commit()
    eventually(lambda: state_of(broker, transactional_id), accept=is_complete)
    assert values(clients[name].read(broker.bootstrap, topic, COMMITTED)) == ["a", "b", "e", "open", "behind"]


@pytest.mark.parametrize("name", NAMES)
def test_consume_transform_produce(
    broker: Broker,
    clients: dict[str, TransactionalClient],
    new_producer: NewProducer,
    new_topic: Callable[[str], str],
    unique: Callable[[str], str],
    name: str,
) -> None:
    """Half of the transactions are aborted and repeated; each value arrives once, and the offsets say so."""
    source, sink, group, transactional_id = new_topic("source"), new_topic("sink"), unique("group"), unique("id")
    client = clients[name]
    producer = new_producer(name, unique("filler"))
    producer.begin()
    wanted = [f"v{number}" for number in range(30)]
    for value in wanted:
        producer.send(source, value)
    producer.commit()
    client.transform(broker.bootstrap, source, sink, group, transactional_id, len(wanted))
    eventually(lambda: state_of(broker, transactional_id), accept=is_complete)
    assert values(client.read(broker.bootstrap, sink, COMMITTED)) == [f"{value}'" for value in wanted]
    assert len(client.read(broker.bootstrap, sink, UNCOMMITTED)) > len(wanted)
    asked = [{"name": source, "partition_indexes": [0]}]
    with RawClient(broker.host, broker.port) as raw:
        fetched: Any = raw.call(build(ApiKey.OFFSET_FETCH, group_id=group, topics=asked, require_stable=True), 7)
    (offset,) = fetched.topics[0].partitions
    assert (offset.error_code, offset.committed_offset) == (0, len(wanted))


@pytest.mark.parametrize("name", NAMES)
def test_a_zombie_is_fenced(
    broker: Broker,
    clients: dict[str, TransactionalClient],
    new_producer: NewProducer,
    new_topic: Callable[[str], str],
    unique: Callable[[str], str],
    name: str,
) -> None:
    topic, transactional_id = new_topic("fenced"), unique("id")
    zombie = new_producer(name, transactional_id)
    zombie.begin()
    zombie.send(topic, "zombie")
    successor = new_producer(name, transactional_id)
    successor.begin()
    successor.send(topic, "successor")
    with pytest.raises(TransactionFailedError):
        zombie.commit()
    successor.commit()
    eventually(lambda: state_of(broker, transactional_id), accept=is_complete)
    for reader in clients.values():
        assert values(reader.read(broker.bootstrap, topic, COMMITTED)) == ["successor"]


@pytest.mark.parametrize("name", NAMES)
def test_a_transaction_that_takes_too_long_is_aborted(
    broker: Broker,
    clients: dict[str, TransactionalClient],
    new_producer: NewProducer,
    new_topic: Callable[[str], str],
    unique: Callable[[str], str],
    name: str,
) -> None:
    """Readers go on, and the producer is told when it commits."""
    topic, transactional_id, other_id = new_topic("slow"), unique("id"), unique("other")
    slow = new_producer(name, transactional_id, timeout_ms=1_000)
    slow.begin()
    with contextlib.suppress(TransactionFailedError):  # on a busy machine its time may be over
        slow.send(topic, "slow")
    quick = new_producer(name, other_id)
    quick.begin()
    quick.send(topic, "quick")
    quick.commit()
    eventually(lambda: state_of(broker, other_id), accept=is_complete)
    eventually(lambda: state_of(broker, transactional_id), accept=lambda state: state == "CompleteAbort")
    assert values(clients[name].read(broker.bootstrap, topic, COMMITTED)) == ["quick"]
    with pytest.raises(TransactionFailedError):
        slow.commit()
