"""Requests whose partitions complete one by one: when they are answered, and with which errors."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.fetch.results import LogDeleteRecordsResult
from odradek.broker.replica_manager.delayed_partitions import DelayedPartitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Delayed(DelayedPartitions[LogDeleteRecordsResult]):
    """A partition completes when it is in `settled`."""

    def __init__(self, results: Mapping[TopicPartition, LogDeleteRecordsResult]) -> None:
        self.answers: list[dict[TopicPartition, ErrorCode]] = []
        self.settled: set[TopicPartition] = set()
        self.asked: list[TopicPartition] = []
        super().__init__(100, results, self.answer)

    def answer(self, results: Mapping[TopicPartition, LogDeleteRecordsResult]) -> None:
        self.answers.append({tp: result.error for tp, result in results.items()})

    def settle(self, topic_partition: TopicPartition, result: LogDeleteRecordsResult) -> bool:
        self.asked.append(topic_partition)
        return topic_partition in self.settled


def test_answered_once_when_the_last_partition_has_settled() -> None:
    delayed = Delayed({A: LogDeleteRecordsResult(), B: LogDeleteRecordsResult()})
    delayed.settled = {A}
    assert not delayed.try_complete()
    assert delayed.answers == []
    delayed.settled = {B}
    assert delayed.try_complete()
    assert delayed.answers == [{A: ErrorCode.NONE, B: ErrorCode.NONE}]
    assert sorted(delayed.asked) == [A, B, B], "a completed partition is not checked again"


def test_failed_partitions_are_not_checked() -> None:
    delayed = Delayed({A: LogDeleteRecordsResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)})
    assert delayed.try_complete()
    assert delayed.asked == []
    assert delayed.answers == [{A: ErrorCode.OFFSET_OUT_OF_RANGE}]


def test_only_pending_partitions_time_out() -> None:
    delayed = Delayed({A: LogDeleteRecordsResult(), B: LogDeleteRecordsResult()})
    delayed.settled = {A}
    delayed.try_complete()
    delayed.run()
    assert delayed.answers == [{A: ErrorCode.NONE, B: ErrorCode.REQUEST_TIMED_OUT}]


def test_of_many_partitions_the_one_that_has_changed_is_looked_at() -> None:
    partitions = [TopicPartition("t", index) for index in range(100)]
    delayed = Delayed({partition: LogDeleteRecordsResult() for partition in partitions})
    for partition in partitions:
        assert delayed.answers == []
        delayed.settled = {partition}
        delayed.try_complete_for(partition)
    assert delayed.answers == [dict.fromkeys(partitions, ErrorCode.NONE)]
    assert delayed.asked == partitions
    assert not delayed.try_complete_for(A), "it was answered"
