from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.meters.verification_stats import VerificationStats
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock


def test_an_answer_has_its_time_and_its_failures() -> None:
    clock = ManualClock()
    stats = VerificationStats(clock)
    answers: list[Mapping[TopicPartition, ErrorCode]] = []
    first = stats.counted(answers.append)
    clock.advance(20)
    second = stats.counted(answers.append)
    clock.advance(3)
    errors = dict.fromkeys((TopicPartition("t", 0), TopicPartition("t", 1)), ErrorCode.INVALID_TXN_STATE)
    first(errors)
    second({})
    assert answers == [errors, {}]
    assert stats.failures == 2
    assert stats.times_ms.values() == {23: 1, 3: 1}
