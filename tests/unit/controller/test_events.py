from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.controller import events as ev
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition import AlterPartitionRequest


class _Reply:
    def __init__(self) -> None:
        self.answers: list[object] = []

    def set_result(self, result: object, /) -> None:
        self.answers.append(result)

    def set_exception(self, exception: BaseException, /) -> None:
        self.answers.append(exception)


@pytest.mark.parametrize(
    "event",
    [
        lambda reply: ev.ReplicaLeaderElection(
            frozenset(), ev.ElectionType.PREFERRED, ev.ElectionTrigger.ADMIN_CLIENT, reply
        ),
        lambda reply: ev.ControlledShutdown(1, 2, reply),
        lambda reply: ev.AlterPartitionReceived(AlterPartitionRequest(), 3, reply),
        lambda reply: ev.AllocateProducerIds(1, 2, reply),
        lambda reply: ev.ApiPartitionReassignment({}, reply),
        lambda reply: ev.ListPartitionReassignments(None, reply),
        lambda reply: ev.UpdateFeatures([], reply),
    ],
)
def test_a_dropped_request_is_answered_not_controller(event: Callable[[_Reply], ev.ControllerEvent]) -> None:
    reply = _Reply()
    ev.preempt(event(reply))
    (answer,) = reply.answers
    assert isinstance(answer, KafkaError)
    assert answer.code is ErrorCode.NOT_CONTROLLER


def test_a_dropped_expiration_lets_the_session_begin() -> None:
    reply = _Reply()
    ev.preempt(ev.Expire(reply))
    ev.fail(ev.Expire(reply), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert reply.answers == [None, None]


def test_other_events_are_dropped_silently() -> None:
    for event in (ev.Startup(), ev.TopicChange(), ev.BrokerModifications(1)):
        ev.preempt(event)
    ev.preempt(ev.ReplicaLeaderElection(None, ev.ElectionType.PREFERRED, ev.ElectionTrigger.ZK))


def test_equal_watch_events_are_equal() -> None:
    assert ev.PartitionModifications("t") == ev.PartitionModifications("t") != ev.PartitionModifications("u")
