"""Samples now and at earlier times, with a cluster that is only played."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.broker.tools.admin.client.offset_lookups import FoundOffset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.lag.group_table import GroupPartition, GroupTable
from spark_jobs.lag.sampling import chosen, earlier_samples, samples_now
from spark_jobs.lag.trends import Sample

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
G0, G1 = GroupPartition("g", T0), GroupPartition("g", T1)


class PlayedCluster:
    """Knows one offset for each partition and timestamp."""

    def __init__(self, offsets: Mapping[tuple[TopicPartition, int], int]) -> None:
        self._offsets = offsets
        self.asked = 0

    def offsets(self, requests: Iterable[Mapping[TopicPartition, int]]) -> list[dict[TopicPartition, FoundOffset]]:
        self.asked += 1
        return [{tp: self._find(tp, time_ms) for tp, time_ms in request.items()} for request in requests]

    def _find(self, tp: TopicPartition, time_ms: int) -> FoundOffset:
        if (tp, time_ms) not in self._offsets:
            return FoundOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return FoundOffset(ErrorCode.NONE, self._offsets[tp, time_ms])


def table(**committed: int) -> GroupTable:
    made = GroupTable()
    made.committed.update(
        {GroupPartition("g", TopicPartition("t", int(name[1:]))): at for name, at in committed.items()}
    )
    return made


def test_lag_is_the_log_end_minus_the_committed_offset() -> None:
    cluster = PlayedCluster({(T0, -1): 30, (T1, -1): 5})
    samples = samples_now(table(p0=10), [G0, G1], cluster, 77)
    assert samples == [Sample(77, "g", "t", 0, 10, 30, 0), Sample(77, "g", "t", 1, None, 5, 0)]
    assert [sample.lag for sample in samples] == [20, None]


def test_a_topic_that_is_gone_has_no_log_end() -> None:
    (sample,) = samples_now(table(p0=10), [G0], PlayedCluster({}), 77)
    assert (sample.log_end, sample.lag) == (None, None)


def test_nothing_is_asked_about_no_partition() -> None:
    cluster = PlayedCluster({})
    assert samples_now(table(), [], cluster, 77) == []
    assert earlier_samples({}, [], cluster, [1]) == []
    assert cluster.asked == 0


def test_earlier_samples_have_the_offsets_of_their_time() -> None:
    cluster = PlayedCluster({(T0, 10): 3, (T0, 20): 9, (T0, 30): -1})
    now = [Sample(40, "g", "t", 0, 8, 12, 2), Sample(40, "g", "t", 1, None, 5, 2)]
    samples = earlier_samples({G0: [None, 7, 8]}, now, cluster, [10, 20, 30])
    assert samples == [Sample(20, "g", "t", 0, 7, 9, 2), Sample(30, "g", "t", 0, 8, 12, 2)]


def test_an_earlier_log_end_is_not_before_what_was_committed_then() -> None:
    (sample,) = earlier_samples({G0: [7]}, [Sample(40, "g", "t", 0, 8, 12, 2)], PlayedCluster({(T0, 10): 3}), [10])
    assert sample.lag == 0


def test_earlier_samples_leave_out_what_cannot_be_asked() -> None:
    assert earlier_samples({G0: [7]}, [Sample(40, "g", "t", 0, 8, 12, 2)], PlayedCluster({}), [10]) == []


def test_groups_and_topics_are_chosen() -> None:
    other = GroupPartition("h", TopicPartition("u", 0))
    keys = [G0, other]
    assert chosen(keys, groups=(), topics=()) == keys
    assert chosen(keys, groups=("h",), topics=()) == [other]
    assert chosen(keys, groups=(), topics=("t",)) == [G0]
    assert chosen(keys, groups=("h",), topics=("t",)) == []
