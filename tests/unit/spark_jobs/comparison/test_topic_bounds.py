from __future__ import annotations

import pytest

from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from spark_jobs.common.job import JobError
from spark_jobs.common.kafka_options import KafkaConnection
from spark_jobs.comparison.ranges import TopicRange
from spark_jobs.comparison.topic_bounds import pinned_ranges
from tests.support.clusters.admin_cluster import AdminCluster, topic
from tests.support.clusters.admin_groups import LOG_END, LOG_START, RECORD_TIME_MS

CONNECTION = KafkaConnection(bootstrap_servers="host:9001")


def find(
    *topics: str, starting_timestamp_ms: int | None = None, begin: str = "earliest", read_committed: bool = False
) -> list[TopicRange]:
    return pinned_ranges(
        CONNECTION,
        topics,
        begin=begin,
        end="latest",
        starting_timestamp_ms=starting_timestamp_ms,
        read_committed=read_committed,
    )


def bounds(each: TopicRange) -> list[tuple[int, int]]:
    return [(found.begin, found.end) for found in each.partitions.values()]


@pytest.mark.parametrize("read_committed", [False, True])
def test_each_topic_from_its_beginning_to_its_end(cluster: AdminCluster, read_committed: bool) -> None:
    cluster.has(topic("t", [1], [3]), topic("u", [2]))
    ranges = find("u", "t", read_committed=read_committed)
    assert [each.topic for each in ranges] == ["u", "t"]
    assert [bounds(each) for each in ranges] == [[(LOG_START, LOG_END)], [(LOG_START, LOG_END)] * 2]
    levels = {request.isolation_level for _, request in cluster.requests(ListOffsetsRequest)}
    assert levels == ({1} if read_committed else {0})


def test_a_time_is_where_a_topic_begins(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1]))
    assert bounds(find("t", starting_timestamp_ms=RECORD_TIME_MS)[0]) == [(50, LOG_END)]
    assert bounds(find("t", starting_timestamp_ms=RECORD_TIME_MS + 1)[0]) == [(LOG_END, LOG_END)]


def test_what_is_not_there_is_one_line(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1]))
    with pytest.raises(JobError, match=r"^there is no topic gone on host:9001: create it first, or check the name$"):
        find("t", "gone")
    with pytest.raises(JobError, match=r"^t has no partition 7$"):
        find("t", begin='{"t": {"7": 1}}')
