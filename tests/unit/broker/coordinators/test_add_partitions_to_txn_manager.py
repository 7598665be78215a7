"""Questions to transaction coordinators: which are sent together, and the errors for clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from odradek.broker.coordinators.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from odradek.broker.meters.verification_stats import VerificationStats
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock

E = ErrorCode
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


NOT_COUNTED = "without a coordinator nothing is asked"


class World:
    """A manager whose requests wait for `answer`."""

    def __init__(self) -> None:
        self.coordinator: int | None = 1
        self.requests: list[tuple[int, AddPartitionsToTxnRequest]] = []
        self.responds: list[Callable[[AddPartitionsToTxnResponse | None], None]] = []
        self.answers: dict[str, Mapping[TopicPartition, ErrorCode]] = {}
        self.manager = AddPartitionsToTxnManager(self)

    def coordinator_of(self, transactional_id: str) -> int | None:
        return self.coordinator

    def send_verification(
        self,
        broker_id: int,
        request: AddPartitionsToTxnRequest,
        respond: Callable[[AddPartitionsToTxnResponse | None], None],
    ) -> None:
        self.requests.append((broker_id, request))
        self.responds.append(respond)

    def ask(
        self, name: str, *partitions: TopicPartition, epoch: int = 0, key: str = "", knows_abortable: bool = False
    ) -> None:
        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            assert (key or name) not in self.answers
            self.answers[key or name] = errors

        self.manager.verify(name, 7, epoch, partitions, answered, knows_abortable_error=knows_abortable)

    def answer(self, error: ErrorCode = E.NONE, **errors: ErrorCode) -> None:
        """Every partition of a transactional id gets that id's error."""
        request = self.requests[-1][1]
        results = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index,
                                partition_error_code=errors.get(transaction.transactional_id, E.NONE),
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in transaction.topics
                ],
            )
            for transaction in request.transactions
        ]
        self.responds.pop()(AddPartitionsToTxnResponse(error_code=error, results_by_transaction=results))

    def sent(self) -> list[list[str]]:
        return [[found.transactional_id for found in request.transactions] for _, request in self.requests]


def test_the_answer_to_a_question_may_bring_the_next_one() -> None:
    """A connection handles its next request when the answer to the one before it is sent."""
    world = World()
    world.ask("other", T0)
    answers: list[tuple[str, Mapping[TopicPartition, ErrorCode]]] = []

    def ask(name: str, then: str | None = None) -> None:
        def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            answers.append((name, errors))
            if then is not None:
                ask(then)

        world.manager.verify("a", 7, 0, [T0], answered, knows_abortable_error=False)

    ask("first", then="third")
    ask("second")
    assert answers == [("first", {T0: E.NETWORK_EXCEPTION}), ("second", {T0: E.NETWORK_EXCEPTION})]
    world.answer()
    world.answer()
    assert answers[2:] == [("third", {})]


def test_questions_during_a_request_go_with_the_next_one() -> None:
    world = World()
    world.ask("a", T0, T1, U0)
    world.ask("b", T0)
    world.ask("c", T1)
    assert world.sent() == [["a"]]
    transaction = world.requests[0][1].transactions[0]
    assert (transaction.producer_id, transaction.producer_epoch, transaction.verify_only) == (7, 0, True)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0, 1]), ("u", [0])]
    world.answer(a=E.INVALID_TXN_STATE)
    assert world.sent() == [["a"], ["b", "c"]]
    assert world.answers == {"a": dict.fromkeys((T0, T1, U0), E.INVALID_TXN_STATE)}
    world.answer()
    assert world.answers["b"] == world.answers["c"] == {}


def test_without_a_coordinator() -> None:
    world = World()
    world.coordinator = None
    world.ask("a", T0)
    assert world.answers == {"a": {T0: E.COORDINATOR_NOT_AVAILABLE}}
    assert not world.requests


@pytest.mark.parametrize(
    ("earlier_epoch", "later_epoch", "told"),
    [
        (1, 1, {"earlier": E.NETWORK_EXCEPTION}),
        (0, 1, {"earlier": E.INVALID_PRODUCER_EPOCH}),
        (1, 0, {"later": E.INVALID_PRODUCER_EPOCH}),
    ],
)
def test_one_question_of_an_id_waits(earlier_epoch: int, later_epoch: int, told: dict[str, ErrorCode]) -> None:
    world = World()
    world.ask("other", T0)
    world.ask("a", T0, epoch=earlier_epoch, key="earlier")
    world.ask("a", T0, epoch=later_epoch, key="later")
    assert world.answers == {key: {T0: error} for key, error in told.items()}
    world.answer()
    assert world.sent() == [["other"], ["a"]]
    world.answer()
    assert set(world.answers) == {"other", "earlier", "later"}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.CLUSTER_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE),
    ],
)
def test_an_error_of_the_request_is_that_of_every_question(error: ErrorCode, told: ErrorCode) -> None:
    world = World()
    world.ask("a", T0, T1)
    world.answer(error)
    assert world.answers == {"a": {T0: told, T1: told}}


def test_with_a_coordinator_that_cannot_verify_nothing_is_verified() -> None:
    world = World()
    world.ask("a", T0, T1)
    world.answer(E.UNSUPPORTED_VERSION)
    assert world.answers == {"a": {}}


def test_no_answer_is_a_network_exception_and_the_next_request_goes_out() -> None:
    world = World()
    world.ask("a", T0)
    world.ask("b", T0)
    world.responds.pop()(None)
    assert world.answers == {"a": {T0: E.NETWORK_EXCEPTION}}
    assert world.sent() == [["a"], ["b"]]


def test_a_callback_that_fails_does_not_affect_other_questions() -> None:
    world = World()

    def fail(_: Mapping[TopicPartition, ErrorCode]) -> None:
        raise ZeroDivisionError

    world.ask("first", T0)
    world.manager.verify("fails", 7, 0, [T0], fail, knows_abortable_error=False)
    world.ask("second", T0)
    world.answer()
    world.ask("third", T0)
    with pytest.raises(ZeroDivisionError):
        world.answer()
    assert world.answers == {"first": {}, "second": {}}
    assert world.sent() == [["first"], ["fails", "second"], ["third"]]


def test_an_id_the_answer_leaves_out_asks_again() -> None:
    world = World()
    world.ask("a", T0)
    world.responds.pop()(AddPartitionsToTxnResponse())
    assert world.answers == {"a": {T0: E.NETWORK_EXCEPTION}}


def test_a_request_that_fails_on_its_way_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(world, "send_verification", fail)
        with pytest.raises(ZeroDivisionError):
            world.ask("a", T0)
    assert world.answers == {"a": {T0: E.NETWORK_EXCEPTION}}
    world.ask("b", T0)
    assert world.sent() == [["b"]]


@pytest.mark.parametrize(
    ("error", "knows_abortable", "told"),
    [
        (E.PRODUCER_FENCED, True, E.INVALID_PRODUCER_EPOCH),
        (E.TRANSACTION_ABORTABLE, True, E.TRANSACTION_ABORTABLE),
        (E.TRANSACTION_ABORTABLE, False, E.INVALID_TXN_STATE),
        (E.INVALID_PRODUCER_ID_MAPPING, False, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_errors_for_clients(error: ErrorCode, knows_abortable: bool, told: ErrorCode) -> None:
    world = World()
    world.ask("a", T0, knows_abortable=knows_abortable)
    world.answer(a=error)
    assert world.answers == {"a": {T0: told}}


def test_questions_are_counted_while_metrics_are_on() -> None:
    world, clock = World(), ManualClock()
    world.ask("off", T0)
    world.answer(E.NETWORK_EXCEPTION)
    world.manager.stats = stats = VerificationStats(clock)
    world.coordinator = None
    world.ask("a", T0)
    assert (stats.failures, stats.times_ms.count) == (0, 0), NOT_COUNTED
    world.coordinator = 1
    world.ask("b", T0, T1)
    clock.advance(7)
    world.answer(b=E.INVALID_TXN_STATE)
    world.ask("c", T0)
    world.answer()
    assert (stats.failures, stats.times_ms.values()) == (2, {7: 1, 0: 1})
