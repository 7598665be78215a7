"""Many groups and many commits: a topic is deleted that all groups have read, groups are listed, described and deleted,
and three million commits are read back by a broker that starts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.records import offset_commit_key, offset_commit_value
from odradek.coordinator.partitioning import partition_for
from odradek.protocol.api import ApiKey
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.group_offsets import commit, find_coordinator, offsets_of, served
from tests.benchmarks.loop_pauses.requests_naming import ask
from tests.benchmarks.loop_pauses.watch import WatchedBroker, print_header
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

OFFSETS_TOPIC, OFFSETS_PARTITIONS = "__consumer_offsets", 50
MAY_WRITE_INTERNAL_TOPICS = "__admin_client"
DOOMED = 100
"""Partitions of the topic that is deleted."""
COMMITS_A_BATCH = 1_000
ANSWER_S = 120


def run(watched: WatchedBroker, count: int) -> None:
    """A tenth of `count` groups, and 300 times as many commits."""
    broker, groups = watched.broker, [f"group-{number:05d}" for number in range(count // 10)]
    commits = count * 300
    print_header(f"{len(groups)} groups with offsets of {DOOMED} partitions each")
    broker.start()
    create_topic(broker, "doomed", DOOMED)
    with RawClient(broker.host, broker.port, timeout_s=ANSWER_S) as client:
        find_coordinator(client)
        with watched.situation("commit them, one group after the other"):
            for group in groups:
                commit(client, group, "doomed", DOOMED)
        with watched.situation("ListGroups"):
            ask(client, build(ApiKey.LIST_GROUPS), 4)
        with watched.situation("DescribeGroups of all"):
            ask(client, build(ApiKey.DESCRIBE_GROUPS, groups=groups), 5)
        with watched.situation("OffsetFetch of all offsets of all groups"):
            wanted = [{"group_id": group, "topics": None} for group in groups]
            ask(client, build(ApiKey.OFFSET_FETCH, groups=wanted), 8)
        with watched.situation("delete the topic"):
            ask(client, build(ApiKey.DELETE_TOPICS, topic_names=["doomed"], timeout_ms=ANSWER_S * 1000), 5)
            wait_until_forgotten(client, groups)
        create_topic(broker, "kept", DOOMED)
        for group in groups:
            commit(client, group, "kept", DOOMED)
        with watched.situation("DeleteGroups of all"):
            ask(client, build(ApiKey.DELETE_GROUPS, groups_names=groups), 2)
    with RawClient(broker.host, broker.port, MAY_WRITE_INTERNAL_TOPICS, timeout_s=ANSWER_S) as client:
        for partition, batch in commit_batches():
            produce_often(client, partition, batch, commits // OFFSETS_PARTITIONS // COMMITS_A_BATCH)
    broker.stop()
    print_header(f"{commits} commits in {OFFSETS_PARTITIONS} partitions")
    watched.start("start")
    with (
        RawClient(broker.host, broker.port, timeout_s=ANSWER_S) as client,
        watched.situation("load them, until the last group is served"),
    ):
        wait_until_loaded(client, [group_of(partition) for partition in range(OFFSETS_PARTITIONS)])
    broker.kill()
    watched.start("start after a kill")
    with (
        RawClient(broker.host, broker.port, timeout_s=ANSWER_S) as client,
        watched.situation("load them again"),
    ):
        wait_until_loaded(client, [group_of(partition) for partition in range(OFFSETS_PARTITIONS)])


def wait_until_forgotten(client: RawClient, groups: Sequence[str]) -> None:
    """Deletion goes on after it was answered."""
    while any(offsets_of(client, groups).values()):
        time.sleep(0.1)


def group_of(partition: int) -> str:
    """A group that lives in that partition of the topic."""
    return next(
        group
        for number in range(100_000)
        if partition_for(group := f"loaded-{number}", OFFSETS_PARTITIONS) == partition
    )


def commit_batches() -> Iterator[tuple[int, bytes]]:
    """For each partition a batch of commits of one of its groups, each of another partition of a topic."""
    now_ms = int(time.time() * 1000)
    value = offset_commit_value(OffsetAndMetadata(offset=1, commit_timestamp_ms=now_ms))
    for partition in range(OFFSETS_PARTITIONS):
        group = group_of(partition)
        keys = (offset_commit_key(group, TopicPartition("topic", index)) for index in range(COMMITS_A_BATCH))
        yield partition, bytes(build_batch([SimpleRecord(now_ms, key, value) for key in keys]))


def produce_often(client: RawClient, partition: int, batch: bytes, times: int) -> None:
    data = [{"name": OFFSETS_TOPIC, "partition_data": [{"index": partition, "records": batch}]}]
    for _ in range(times):
        answer = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=ANSWER_S * 1000, topic_data=data), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer  # type: ignore[attr-defined]


def wait_until_loaded(client: RawClient, groups: Sequence[str]) -> None:
    while served(client, groups) != set(groups):
        time.sleep(0.1)
