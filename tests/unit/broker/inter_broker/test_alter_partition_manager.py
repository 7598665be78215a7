"""ISR changes on their way to the controller: which are sent together, and which are sent again."""

from __future__ import annotations

from collections.abc import Coroutine, Generator

import pytest

from odradek.broker.inter_broker.alter_partition_manager import RETRY_MS, AlterPartitionItem, AlterPartitionManager
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderRecoveryState
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

IDS = {"a": b"A" * 16, "b": b"B" * 16}
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
CHANGE = LeaderAndIsr(leader=1, isr=(1, 2, 3), leader_epoch=5, partition_epoch=10)
NONE = ErrorCode.NONE


class Answer:
    """A request, and the future of its answer."""

    def __init__(self) -> None:
        self.response: Response | None = None

    def __await__(self) -> Generator[None, None, Response]:
        while self.response is None:
            yield
        return self.response


class Controller:
    """Implements `ToController`: keeps the requests; the test answers them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.epoch = 100
        self.requests: list[AlterPartitionRequest] = []
        self.versions: list[int] = []
        self.waiting: list[Answer] = []
        self.running: list[Coroutine[object, object, None]] = []
        self.answers: list[tuple[TopicPartition, LeaderAndIsr | ErrorCode]] = []
        self.manager = AlterPartitionManager(self, self.timer, self.spawn, broker_id=1, broker_epoch=lambda: self.epoch)

    async def ask(  # type: ignore[override]
        self, request: Request, response_type: type[Response], *, timeout_ms: int | None, version: int | None = None
    ) -> Response:
        assert isinstance(request, AlterPartitionRequest)
        assert timeout_ms is None, "it is never given up"
        assert version is not None
        self.versions.append(version)
        self.requests.append(decode(AlterPartitionRequest, encode(request, version), version))
        self.waiting.append(Answer())
        return await self.waiting[-1]

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        self.running.append(work)
        work.send(None)

    def submit(self, *topic_partitions: TopicPartition, change: LeaderAndIsr = CHANGE) -> None:
        for tp in topic_partitions:
            self.manager.submit(
                AlterPartitionItem(tp, IDS[tp.topic], change, lambda answer, tp=tp: self.answers.append((tp, answer)))
            )

    def answer(self, response: AlterPartitionResponse) -> None:
        self.waiting.pop(0).response = response
        with pytest.raises(StopIteration):
            self.running.pop(0).send(None)

    def sent(self) -> list[list[tuple[bytes, int]]]:
        return [
            [(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions]
            for request in self.requests
        ]

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()


@pytest.fixture
def controller() -> Controller:
    return Controller()


def success(*topic_partitions: TopicPartition, error: ErrorCode = NONE, recovery: int = 0) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        topics=[
            ResponseTopicData(
                topic_id=IDS[tp.topic],
                partitions=[
                    ResponsePartitionData(
                        partition_index=tp.partition,
                        error_code=error,
                        leader_id=1,
                        leader_epoch=5,
                        isr=[1, 2],
                        leader_recovery_state=recovery,
                        partition_epoch=11,
                    )
                ],
            )
            for tp in topic_partitions
        ]
    )


DONE = LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=5, partition_epoch=11)


def test_request_says_all_there_is_to_say(controller: Controller) -> None:
    controller.submit(A0)
    (request,) = controller.requests
    ((topic,), (part,)) = request.topics, request.topics[0].partitions
    assert (request.broker_id, request.broker_epoch, topic.topic_id) == (1, 100, IDS["a"])
    assert (part.partition_index, part.leader_epoch, part.partition_epoch, part.leader_recovery_state) == (0, 5, 10, 0)
    assert [(state.broker_id, state.broker_epoch) for state in part.new_isr_with_epochs] == [(1, -1), (2, -1), (3, -1)]
    controller.answer(success(A0))
    assert controller.answers == [(A0, DONE)]


def test_changes_during_a_request_are_sent_together_after_it(controller: Controller) -> None:
    controller.submit(A0, A1, B0)
    assert controller.sent() == [[(IDS["a"], 0)]]
    controller.answer(success(A0))
    assert controller.sent()[1:] == [[(IDS["a"], 1), (IDS["b"], 0)]]
    assert [len(request.topics) for request in controller.requests] == [1, 2]
    controller.answer(success(A1, B0))
    assert [tp for tp, _ in controller.answers] == [A0, A1, B0]
    assert len(controller.requests) == 2


def test_second_change_of_a_partition_is_not_attempted(controller: Controller) -> None:
    controller.submit(A0, A0)
    assert controller.answers == [(A0, ErrorCode.OPERATION_NOT_ATTEMPTED)]
    controller.answer(success(A0))
    controller.submit(A0)
    assert len(controller.requests) == 2


def test_a_recreated_topic_of_the_same_name_counts_as_the_same(controller: Controller) -> None:
    controller.submit(A0)
    controller.manager.submit(
        AlterPartitionItem(A0, b"?" * 16, CHANGE, lambda answer: controller.answers.append((A0, answer)))
    )
    assert controller.answers == [(A0, ErrorCode.OPERATION_NOT_ATTEMPTED)]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_error_of_the_whole_request_sends_it_again_with_the_new_broker_epoch(
    controller: Controller, error: ErrorCode
) -> None:
    controller.submit(A0)
    controller.answer(AlterPartitionResponse(error_code=error))
    controller.submit(B0)
    controller.epoch = 200
    controller.advance(RETRY_MS - 1)
    assert [request.broker_epoch for request in controller.requests] == [100, 100], "a new change does not wait"
    controller.answer(AlterPartitionResponse(error_code=error))
    controller.advance(RETRY_MS)
    assert controller.requests[-1].broker_epoch == 200
    assert controller.sent()[-1] == [(IDS["a"], 0), (IDS["b"], 0)]
    controller.answer(success(A0, B0))
    controller.advance(10 * RETRY_MS)
    assert controller.answers == [(A0, DONE), (B0, DONE)]
    assert len(controller.requests) == 3


@pytest.mark.parametrize("error", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA])
def test_error_of_a_partition_is_its_own(controller: Controller, error: ErrorCode) -> None:
    controller.submit(B0, A0)
    controller.answer(success(B0, error=error))
    controller.answer(success(A0))
    assert controller.answers == [(B0, error), (A0, DONE)]


def test_partition_that_is_left_out_is_sent_again(controller: Controller) -> None:
    controller.submit(B0, A0, A1)
    controller.answer(success(B0))
    controller.answer(success(A1))
    assert controller.sent()[-1] == [(IDS["a"], 0)]
    assert [tp for tp, _ in controller.answers] == [B0, A1]


def test_partitions_that_were_not_in_the_request_are_ignored(controller: Controller) -> None:
    controller.submit(A0)
    controller.answer(success(A0, A1, B0))
    assert controller.answers == [(A0, DONE)]


def test_an_answer_may_lead_to_a_new_proposal(controller: Controller) -> None:
    controller.manager.submit(AlterPartitionItem(A0, IDS["a"], CHANGE, lambda answer: controller.submit(A0)))
    controller.answer(success(A0, error=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert controller.answers == []
    assert len(controller.requests) == 2
    controller.answer(success(A0))
    assert controller.answers == [(A0, DONE)]


def test_a_new_proposal_within_an_answer_does_not_take_unsettled_ones_along(controller: Controller) -> None:
    controller.submit(A1)
    controller.manager.submit(AlterPartitionItem(A0, IDS["a"], CHANGE, lambda answer: controller.submit(A0)))
    controller.manager.submit(AlterPartitionItem(B0, IDS["b"], CHANGE, lambda answer: controller.submit(B0)))
    controller.answer(success(A1))
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    controller.answer(success(A0, B0, error=error))
    assert len(controller.requests) == 3
    controller.answer(success(A0, B0))
    assert controller.answers == [(A1, DONE), (A0, DONE), (B0, DONE)]
    assert len(controller.requests) == 3


@pytest.mark.parametrize(
    ("recovery", "expected"),
    [(0, LeaderRecoveryState.RECOVERED), (1, LeaderRecoveryState.RECOVERING), (2, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_recovery_state(controller: Controller, recovery: int, expected: LeaderRecoveryState | ErrorCode) -> None:
    controller.submit(A0)
    controller.answer(success(A0, recovery=recovery))
    ((_, answer),) = controller.answers
    found = answer.leader_recovery_state if isinstance(answer, LeaderAndIsr) else answer
    assert found is expected


@pytest.mark.parametrize(
    ("metadata_version", "by_id", "by_name"),
    [
        (MetadataVersion.IBP_2_7_IV0, 0, 0),
        (MetadataVersion.IBP_3_2_IV0, 1, 1),
        (MetadataVersion.IBP_3_3_IV0, 2, 1),
        (MetadataVersion.IBP_3_5_IV1, 3, 1),
    ],
)
def test_topics_are_named_where_one_has_no_id(metadata_version: MetadataVersion, by_id: int, by_name: int) -> None:
    controller = Controller()
    controller.manager = AlterPartitionManager(
        controller,
        controller.timer,
        controller.spawn,
        broker_id=1,
        broker_epoch=lambda: 100,
        metadata_version=metadata_version,
    )
    controller.submit(A0)
    controller.answer(success(A0))
    change = AlterPartitionItem(A0, None, CHANGE, lambda answer: controller.answers.append((A0, answer)))
    controller.manager.submit(change)
    part = ResponsePartitionData(leader_id=1, leader_epoch=5, isr=[1], partition_epoch=9)
    controller.answer(AlterPartitionResponse(topics=[ResponseTopicData(topic_name=A0.topic, partitions=[part])]))
    assert controller.versions == [by_id, by_name]
    assert controller.requests[1].topics[0].topic_name == A0.topic
    assert controller.requests[1].topics[0].partitions[0].new_isr == list(CHANGE.isr)
    assert len(controller.answers) == 2


def test_a_bug_on_the_way_does_not_stop_all_changes_after_it(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: object, response_type: object, *, timeout_ms: object, version: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(controller, "ask", fail)
        with pytest.raises(ZeroDivisionError):
            controller.submit(A0)
    controller.running.clear()
    controller.advance(RETRY_MS)
    controller.answer(success(A0))
    assert controller.answers == [(A0, DONE)]


def test_a_callback_that_fails_does_not_stop_later_requests(controller: Controller) -> None:
    def fail(_: LeaderAndIsr | ErrorCode) -> None:
        raise ZeroDivisionError

    controller.manager.submit(AlterPartitionItem(A0, IDS["a"], CHANGE, fail))
    controller.submit(A1)
    controller.waiting.pop(0).response = success(A0)
    with pytest.raises(ZeroDivisionError):
        controller.running.pop(0).send(None)
    controller.advance(RETRY_MS)
    assert controller.sent() == [[(IDS["a"], 0)], [(IDS["a"], 1)]]


def test_a_request_that_cannot_be_made_is_made_again(controller: Controller) -> None:
    def fail() -> int:
        raise ZeroDivisionError

    controller.manager._broker_epoch = fail
    with pytest.raises(ZeroDivisionError):
        controller.submit(A0)
    controller.manager._broker_epoch = lambda: 101
    controller.advance(RETRY_MS)
    assert controller.sent() == [[(IDS["a"], 0)]]
