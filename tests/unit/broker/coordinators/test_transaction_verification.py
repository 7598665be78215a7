"""Transactional appends wait until the coordinator has verified them (KIP-890)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.coordinators.transaction_verification import UNVERIFIED, TransactionVerification
from odradek.broker.fetch.results import LogAppendResult
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.wire.requests import batch, build

E = ErrorCode
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeManager:
    """Coordinators whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.errors: dict[TopicPartition, ErrorCode] = {}

    def verify(self, *question: Any, knows_abortable_error: bool) -> None:
        *asked, respond = question
        self.asked.append((*asked, knows_abortable_error))
        respond({tp: error for tp, error in self.errors.items() if tp in asked[3]})


class World:
    def __init__(self, broker: InProcessBroker) -> None:
        self.broker = broker
        self.manager = FakeManager()
        services = broker.services
        self.verification = TransactionVerification(
            services.config,
            services.replica_manager,
            self.manager,  # type: ignore[arg-type]
        )
        self.results: dict[TopicPartition, LogAppendResult] | None = None
        self.guards: dict[TopicPartition, object | None] = {}

    def verify(self, records: dict[TopicPartition, bytes]) -> None:
        def verified(results: Any, guards: Any) -> None:
            assert self.results is None
            self.results, self.guards = dict(results), dict(guards)

        views = {tp: memoryview(found) for tp, found in records.items()}
        self.verification.verify_records("id", views, verified, knows_abortable_error=True)

    def append(self, tp: TopicPartition, records: bytes, guard: object | None) -> ErrorCode:
        found: list[LogAppendResult] = []
        self.broker.services.replica_manager.append(
            timeout_ms=1000,
            required_acks=1,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            records={tp: memoryview(bytearray(records))},
            verification_guards={tp: guard},
            respond=lambda results: found.append(results[tp]),
        )
        return found[0].error


def transactional(producer_id: int, sequence: int = 0, epoch: int = 0) -> bytes:
    return batch(b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path_factory.mktemp("broker")) as made:
        made.create_topic("t", 2)
        yield made


@pytest.fixture
def world(broker: InProcessBroker) -> World:
    return World(broker)


def test_the_append_takes_the_guard_it_was_verified_with(world: World) -> None:
    records = transactional(1)
    world.verify({T0: records})
    assert world.manager.asked == [("id", 1, 0, [T0], True)]
    assert world.results == {}
    assert world.append(T0, records, object()) == E.INVALID_TXN_STATE
    assert world.append(T0, records, world.guards[T0]) == E.NONE
    # From now on the transaction is open in the log, and the coordinator is not asked.
    again = World(world.broker)
    again.verify({T0: transactional(1, 1)})
    assert (again.manager.asked, again.results, again.guards) == ([], {}, {})
    assert again.append(T0, transactional(1, 1), None) == E.NONE


def test_a_marker_makes_the_guard_worthless(world: World) -> None:
    """The transaction ends while the append is verified: the append would begin another one that is never ended."""
    records = transactional(2)
    world.verify({T0: records})
    topics = [{"name": "t", "partition_indexes": [0]}]
    marker = {"producer_id": 2, "producer_epoch": 0, "transaction_result": False, "topics": topics}
    world.broker.call(build(ApiKey.WRITE_TXN_MARKERS, markers=[marker]), 1)
    assert world.append(T0, records, world.guards[T0]) == E.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("error", "told", "message"),
    [
        (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE, "Partition was not added to the transaction"),
        (E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE, None),
        (E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_EPOCH, None),
    ],
)
def test_the_producers_error(world: World, error: ErrorCode, told: ErrorCode, message: str | None) -> None:
    world.manager.errors = {T1: error}
    world.verify({T0: transactional(3), T1: transactional(3)})
    assert world.results is not None
    assert set(world.results) == {T1}
    assert (world.results[T1].error, world.results[T1].error_message) == (told, message)


@pytest.mark.parametrize("error", sorted(UNVERIFIED), ids=lambda error: E(error).name)
def test_when_nothing_is_known_the_producer_comes_again(world: World, error: ErrorCode) -> None:
    world.manager.errors = {T0: error}
    world.verify({T0: transactional(4)})
    assert world.results is not None
    assert world.results[T0].error == E.NOT_ENOUGH_REPLICAS
    assert (world.results[T0].error_message or "").endswith(f"Underlying error: {error.name}")


def test_plain_records_are_not_verified(world: World) -> None:
    idempotent = batch(b"v", producer_id=5, producer_epoch=0, base_sequence=0)
    world.verify({T0: batch(b"plain"), T1: idempotent})
    assert (world.manager.asked, world.results) == ([], {})
    mixed = World(world.broker)
    mixed.verify({T0: batch(b"plain"), T1: transactional(6)})
    assert [asked[3] for asked in mixed.manager.asked] == [[T1]]


def test_two_producers_in_one_request(world: World) -> None:
    with pytest.raises(KafkaError) as raised:
        world.verify({T0: transactional(7), T1: transactional(8)})
    assert raised.value.code == E.INVALID_PRODUCER_ID_MAPPING


def test_a_partition_that_is_led_elsewhere_or_nowhere(world: World) -> None:
    missing = TopicPartition("missing", 0)
    world.verify({missing: transactional(9), T0: transactional(9)})
    assert [asked[3] for asked in world.manager.asked] == [[T0]]
    assert world.results is not None
    assert {tp: result.error for tp, result in world.results.items()} == {missing: E.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_coordinator_asks_for_its_own_topic(world: World) -> None:
    answers: list[tuple[ErrorCode, object | None]] = []
    verify = world.verification.of_topic("t")
    verify(1, "id", 10, 0, lambda *answer: answers.append(answer), knows_abortable_error=False)
    world.manager.errors = {T1: E.TRANSACTION_ABORTABLE}
    verify(1, "id", 10, 0, lambda *answer: answers.append(answer), knows_abortable_error=False)
    assert [error for error, _ in answers] == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert answers[0][1] is not None
    assert [asked[-1] for asked in world.manager.asked] == [False, False]


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, {"transaction.partition.verification.enable": "false"}) as trusting:
        trusting.create_topic("t", 2)
        world = World(trusting)
        world.verify({T0: transactional(1)})
        assert (world.manager.asked, world.results, world.guards) == ([], {}, {})
        assert world.append(T0, transactional(1), None) == E.NONE
