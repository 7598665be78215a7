"""The coordinator's life; what it answers is in the transcripts in tests/golden/transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from odradek.coordinator.transaction.config import TransactionConfig
from odradek.coordinator.transaction.coordinator import NO_PRODUCER, ProducerIdAndEpoch, TransactionCoordinator
from odradek.coordinator.transaction.states import IllegalTransitionError, TransactionState
from odradek.coordinator.transaction.transaction_state_manager import TransactionStateManager
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.coordinator_log import InMemoryCoordinatorLog
from tests.support.in_process.marker_channel import FakeMarkerChannel
from tests.support.transcripts.transaction_transcript import Transcript


class LateIds:
    """Producer ids that come later."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[int | ErrorCode], None]] = []

    def __call__(self, use: Callable[[int | ErrorCode], None]) -> None:
        self.waiting.append(use)


def coordinator(ids: LateIds) -> TransactionCoordinator:
    clock = ManualClock()
    made = TransactionCoordinator(
        config=TransactionConfig(),
        log=InMemoryCoordinatorLog(partition_count=1),
        clock=clock,
        timer=SystemTimer(clock),
        producer_ids=ids,
        channel=FakeMarkerChannel(),
    )
    made.startup()
    made.on_elected(0, 0)
    return made


def test_two_that_wait_for_an_id_get_one_transaction() -> None:
    ids = LateIds()
    found = coordinator(ids)
    answers: list[tuple[ErrorCode, ProducerIdAndEpoch]] = []
    for _ in range(2):
        found.init_producer_id("a", 1000, None, lambda *answer: answers.append(answer))
    for number, use in enumerate(ids.waiting):
        use(40 + number)
    assert answers == [(ErrorCode.NONE, (40, 0)), (ErrorCode.NONE, (40, 1))]


def test_the_partition_moves_while_an_id_is_waited_for() -> None:
    ids = LateIds()
    found = coordinator(ids)
    answers: list[tuple[ErrorCode, ProducerIdAndEpoch]] = []
    found.init_producer_id("a", 1000, None, lambda *answer: answers.append(answer))
    found.on_resigned(0, 1)
    ids.waiting.pop()(40)
    assert answers == [(ErrorCode.NOT_COORDINATOR, NO_PRODUCER)]


def test_no_sweep_after_the_end(caplog: pytest.LogCaptureFixture) -> None:
    world = Transcript()
    for command in ("init p timeout=10", "add p t-0", "shutdown"):
        world.run(command)
    with caplog.at_level(logging.INFO):
        assert world.run("wait 30s") == []
    assert world.timer.size == 0


def test_a_time_out_the_log_refuses_is_tried_again_with_the_same_epoch(caplog: pytest.LogCaptureFixture) -> None:
    world = Transcript()
    for command in ("init p timeout=10", "add p t-0", "fail log NOT_ENOUGH_REPLICAS"):
        world.run(command)
    with caplog.at_level(logging.WARNING):
        world.run("wait 20s")
    assert "Failed to abort the timed out transaction of transactional id p" in caplog.text
    world.run("fail log NONE")
    assert world.run("wait 10s")[-1] == "p: CompleteAbort 1/1"


def test_a_state_that_cannot_be_is_a_bug() -> None:
    world = Transcript()
    world.run("init p")
    (metadata,) = world.coordinator.states.transactions
    metadata.state = TransactionState.DEAD
    with pytest.raises(IllegalTransitionError):
        world.run("init p")


def test_one_partition_more_of_an_open_transaction_keeps_its_beginning() -> None:
    world = Transcript()
    for command in ("init p", "add p t-0", "wait 5s", "add p t-1"):
        world.run(command)
    (metadata,) = world.coordinator.states.transactions
    assert metadata.start_timestamp_ms == metadata.last_update_timestamp_ms - 5000
    assert metadata.topic_partitions == {TopicPartition("t", 0), TopicPartition("t", 1)}


@pytest.mark.parametrize(
    ("owner", "name", "interval"),
    [(TransactionCoordinator, "abort_timed_out", "10s"), (TransactionStateManager, "expire", "60m")],
)
def test_one_exception_ends_no_sweep(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, interval: str) -> None:
    rounds: list[object] = []

    def fail(swept: object) -> None:
        rounds.append(swept)
        if len(rounds) == 1:
            raise ValueError("a bug")

    monkeypatch.setattr(owner, name, fail)
    world = Transcript()
    with pytest.raises(ExceptionGroup):
        world.run(f"wait {interval}")
    world.run(f"wait {interval}")
    assert len(rounds) == 2
