from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import spawn
from odradek.broker.tools.data.consumer.consumer import Consumer, ConsumerConfig, Subscription
from odradek.broker.tools.data.consumer.fetcher import FetchConfig
from odradek.broker.tools.data.consumer.group_member import GroupConfig
from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, OffsetChoice, Origin
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.join_group import JoinGroupRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import CONFIG, DataCluster
from tests.support.virtual_test import virtual_test
from tests.unit.broker.tools.data.consumer.test_group_member import Coordinator

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
FROM_BEGINNING = ConsumerConfig(start=BEGINNING, fetch=FetchConfig(auto_offset_reset=BEGINNING))


async def started(
    cluster: DataCluster, subscription: Subscription, config: ConsumerConfig = FROM_BEGINNING
) -> Consumer:
    consumer = Consumer(cluster.client(), config, subscription)
    await consumer.start()
    return consumer


async def values(cluster: DataCluster, consumer: Consumer, polls: int = 15) -> list[bytes]:
    found = []
    for _ in range(polls):
        chunk = await consumer.poll(100)
        if chunk is not None:
            found += [each.record.value or b"" for each in chunk.records]
            consumer.done(chunk)
    return sorted(found)


def topics(*names: str) -> Subscription:
    return Subscription(topics=frozenset(names))


def filled(topic: str = "t", partitions: int = 2) -> DataCluster:
    cluster = DataCluster()
    cluster.create(topic, partitions)
    for partition in range(partitions):
        cluster.fill(topic, b"%d" % partition, partition=partition)
    return cluster


@virtual_test
async def test_all_partitions_or_chosen_ones() -> None:
    cluster = filled()
    consumer = await started(cluster, topics("t"))
    assert await values(cluster, consumer) == [b"0", b"1"]
    await consumer.close()
    consumer = await started(cluster, Subscription(topics=frozenset({"t"}), partitions=frozenset({1})))
    assert await values(cluster, consumer) == [b"1"]
    await consumer.close()
    with pytest.raises(CommandFailed, match=r"topic t has 2 partition\(s\), not 2"):
        await started(cluster, Subscription(topics=frozenset({"t"}), partitions=frozenset({2})))


@virtual_test
async def test_patterns_find_topics_also_later_ones() -> None:
    cluster = filled("metrics-a", 1)
    cluster.create("other-metrics-b")
    consumer = await started(cluster, Subscription(patterns=(re.compile("^metrics-.*"),)))
    assert consumer.assignment == {TopicPartition("metrics-a", 0)}
    assert await values(cluster, consumer) == [b"0"]
    cluster.create("metrics-b")
    cluster.fill("metrics-b", b"new")
    cluster.clock.advance(30_000)
    assert await values(cluster, consumer) == [b"new"]
    await consumer.close()


@virtual_test
async def test_the_others_of_a_pattern_are_consumed_when_a_topic_is_deleted() -> None:
    cluster = filled("metrics-a", 1)
    cluster.create("metrics-b")
    consumer = await started(cluster, Subscription(patterns=(re.compile("^metrics-.*"),)))
    assert await values(cluster, consumer) == [b"0"]
    del cluster.leaders[TopicPartition("metrics-a", 0)]
    cluster.fill("metrics-b", b"other")
    cluster.clock.advance(30_000)
    assert await values(cluster, consumer) == [b"other"]
    await consumer.close()


@virtual_test
async def test_partitions_that_are_added_begin_at_their_beginning() -> None:
    cluster = filled(partitions=1)
    consumer = await started(cluster, topics("t"), ConsumerConfig(start=END))
    assert await values(cluster, consumer) == []
    cluster.create("t", 2)
    cluster.fill("t", b"first", partition=1)
    cluster.clock.advance(30_000)
    assert await values(cluster, consumer) == [b"first"]
    await consumer.close()


@virtual_test
async def test_it_is_finished_at_what_was_the_end() -> None:
    cluster = filled()
    consumer = await started(cluster, topics("t"), ConsumerConfig(start=BEGINNING, ends=(END,)))
    assert not consumer.is_finished
    cluster.fill("t", b"late")
    assert await values(cluster, consumer) == [b"0", b"1"]
    assert consumer.is_finished
    await consumer.close()


@virtual_test
async def test_the_first_of_two_ends_counts() -> None:
    cluster = filled(partitions=1)
    cluster.clock.advance(1000)
    cluster.fill("t", b"later")
    ends = (OffsetChoice(Origin.TIMESTAMP, cluster.clock.time_ms()), END)
    consumer = await started(cluster, topics("t"), ConsumerConfig(start=BEGINNING, ends=ends))
    assert await values(cluster, consumer) == [b"0"]
    await consumer.close()


@virtual_test
async def test_an_end_that_cannot_be_found_is_an_error_in_the_end() -> None:
    cluster = filled()
    cluster.leaders[B] = -1
    began_ms = cluster.clock.monotonic_ms()
    with pytest.raises(CommandFailed, match="cannot read to the end: t-1: it has no leader"):
        await started(cluster, topics("t"), ConsumerConfig(start=BEGINNING, ends=(END,)))
    assert cluster.clock.monotonic_ms() - began_ms == CONFIG.api_timeout_ms
    cluster.leaders[B] = 2
    consumer = await started(cluster, topics("t"), ConsumerConfig(start=BEGINNING, ends=(END,)))
    assert await values(cluster, consumer) == [b"0", b"1"]
    await consumer.close()


def lose_the_leader(cluster: DataCluster) -> None:
    cluster.leaders[A] = -1


def lose_the_broker(cluster: DataCluster) -> None:
    cluster.unreachable = {1}


def delete_the_topic(cluster: DataCluster) -> None:
    del cluster.leaders[A]


@virtual_test
@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (lose_the_leader, "it has no leader"),
        (lose_the_broker, "its leader, broker 1, gives no records"),
        (delete_the_topic, "its topic is deleted"),
    ],
)
async def test_an_end_that_cannot_be_reached_is_an_error_when_the_others_are(
    lose: Callable[[DataCluster], None], reason: str
) -> None:
    cluster = filled(partitions=1)
    cluster.create("other", leader=2)
    cluster.fill("other", b"x")
    consumer = await started(cluster, topics("t", "other"), ConsumerConfig(start=BEGINNING, ends=(END,)))
    lose(cluster)
    slow_until_ms = cluster.clock.monotonic_ms() + CONFIG.api_timeout_ms + 10_000

    def fetch(broker_id: int, request: FetchRequest) -> FetchResponse:
        response = cluster.fetch(broker_id, request)
        if broker_id == 2 and cluster.clock.monotonic_ms() < slow_until_ms:
            response.responses[0].partitions[0].records = b""
        return response

    cluster.on(FetchRequest, fetch)
    found: list[bytes] = []
    while not found:
        cluster.clock.advance(100)
        found += await values(cluster, consumer, 1)
    assert found == [b"x"]
    with pytest.raises(CommandFailed, match=f"cannot read to the end: t-0: {reason}$"):
        await values(cluster, consumer)
    await consumer.close()


@virtual_test
async def test_a_partition_that_is_read_again_is_not_late() -> None:
    cluster = filled(partitions=1)
    consumer = await started(cluster, topics("t"), ConsumerConfig(start=BEGINNING, ends=(END,)))
    cluster.leaders[A] = -1
    spawn(cluster.later(CONFIG.api_timeout_ms - 1_000, lambda: cluster.create("t")))
    found: list[bytes] = []
    while not consumer.is_finished:
        found += await values(cluster, consumer, 1)
    assert found == [b"0"]
    await consumer.close()


def in_group(**fields: object) -> ConsumerConfig:
    return ConsumerConfig(group=GroupConfig(group_id="g"), start=BEGINNING, **fields)  # type: ignore[arg-type]


@virtual_test
async def test_a_member_begins_at_the_committed_offset_and_commits_what_is_done() -> None:
    cluster = filled(partitions=2)
    coordinator = Coordinator(cluster)
    coordinator.committed = {0: 1}
    cluster.fill("t", b"next")
    consumer = await started(cluster, topics("t"), in_group())
    assert not consumer.is_finished, "it has no partitions yet"
    assert await values(cluster, consumer) == [b"next"]
    await consumer.commit()
    (commit,) = cluster.requests(OffsetCommitRequest)
    assert [(found.partition_index, found.committed_offset) for found in commit.topics[0].partitions] == [(0, 2)]
    await consumer.close()
    assert len(cluster.requests(OffsetCommitRequest)) == 1, "it is committed already"
    assert cluster.requests(LeaveGroupRequest)


@virtual_test
async def test_what_was_not_done_is_not_committed() -> None:
    cluster = filled(partitions=1)
    Coordinator(cluster).committed = {}
    cluster.fill("t", b"x", b"y")
    consumer = await started(cluster, topics("t"), in_group())
    chunk = None
    while chunk is None or not chunk.records:
        chunk = await consumer.poll(100)
    consumer.done(chunk, 1)
    await consumer.poll(100)
    await consumer.close()
    assert cluster.requests(OffsetCommitRequest)[-1].topics[0].partitions[0].committed_offset == 1


@virtual_test
async def test_a_rebalance_commits_first_and_gives_the_partitions_anew() -> None:
    cluster = filled(partitions=2)
    coordinator = Coordinator(cluster)
    coordinator.committed = {}
    consumer = await started(cluster, topics("t"), in_group())
    assert await values(cluster, consumer, 5) == [b"0"]
    coordinator.heartbeat_errors = [ErrorCode.REBALANCE_IN_PROGRESS]
    coordinator.leader = "other"
    cluster.asked.clear()
    await cluster.client().wait(3_500)
    assert await values(cluster, consumer) == [b"1"]
    kinds = [type(request) for _, request in cluster.asked]
    assert kinds.index(OffsetCommitRequest) < kinds.index(JoinGroupRequest)
    assert consumer.assignment == {B}
    await consumer.close()


@virtual_test
async def test_offsets_are_committed_from_time_to_time() -> None:
    cluster = filled(partitions=1)
    Coordinator(cluster).committed = {}
    consumer = await started(cluster, topics("t"), in_group(auto_commit_interval_ms=1000))
    await values(cluster, consumer, 5)
    cluster.clock.advance(1000)
    await values(cluster, consumer, 3)
    assert len(cluster.requests(OffsetCommitRequest)) == 1
    await consumer.close()


@virtual_test
@pytest.mark.parametrize("assignors", [("range",), ("cooperative-sticky",)])
async def test_a_member_goes_on_when_a_topic_is_deleted_whose_records_it_has_consumed(
    assignors: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = filled(partitions=1)
    cluster.create("other")
    coordinator = Coordinator(cluster)
    coordinator.committed, coordinator.leader, coordinator.protocol = {}, "another", assignors[0]
    coordinator.assigned = [A, TopicPartition("other", 0)]
    config = in_group()._replace(group=GroupConfig(group_id="g", assignors=assignors))
    consumer = await started(cluster, topics("t", "other"), config)
    assert await values(cluster, consumer) == [b"0"]
    del cluster.leaders[A]
    coordinator.commit_errors = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 9
    coordinator.assigned = [TopicPartition("other", 0)]
    cluster.fill("other", b"next")
    began_ms = cluster.clock.monotonic_ms()
    cluster.clock.advance(5_000)
    assert set(await values(cluster, consumer)) == {b"next"}
    assert consumer.assignment == {TopicPartition("other", 0)}
    assert cluster.clock.monotonic_ms() - began_ms < 10_000
    assert "the offset of t-0 is not committed: UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().err
    await consumer.close()


@virtual_test
async def test_a_cluster_that_is_away_for_a_while_is_waited_for() -> None:
    cluster = filled(partitions=1)
    coordinator = Coordinator(cluster)
    coordinator.committed = {}
    consumer = await started(cluster, topics("t"), in_group())
    assert await values(cluster, consumer, 5) == [b"0"]
    cluster.unreachable = {1, 2}
    cluster.fill("t", b"next")
    assert consumer._group is not None
    consumer._group.needs_rejoin = True
    spawn(cluster.later(70_000, cluster.unreachable.clear))
    cluster.clock.advance(30_000)
    coordinator.committed = {0: 1}
    assert await values(cluster, consumer) == [b"next"]
    await consumer.close()


def cooperative(cluster: DataCluster) -> tuple[Coordinator, ConsumerConfig]:
    coordinator = Coordinator(cluster)
    coordinator.protocol, coordinator.leader, coordinator.committed = "cooperative-sticky", "other", {}
    coordinator.assigned = [A, B]
    group = GroupConfig(group_id="g", assignors=("cooperative-sticky",))
    return coordinator, ConsumerConfig(group=group, start=BEGINNING)


async def rebalanced(cluster: DataCluster, coordinator: Coordinator, consumer: Consumer) -> None:
    """Until a heartbeat has said that the group rebalances, and the consumer has joined again."""
    coordinator.heartbeat_errors = [ErrorCode.REBALANCE_IN_PROGRESS]
    generation = coordinator.generation
    while coordinator.generation == generation:
        cluster.clock.advance(1_000)
        await values(cluster, consumer, 3)


@virtual_test
async def test_a_cooperative_member_keeps_what_is_assigned_again() -> None:
    cluster = filled(partitions=2)
    coordinator, config = cooperative(cluster)
    consumer = await started(cluster, topics("t"), config)
    assert await values(cluster, consumer) == [b"0", b"1"]
    coordinator.assigned = [A]
    await rebalanced(cluster, coordinator, consumer)
    await values(cluster, consumer, 5)
    assert consumer.assignment == {A}
    offsets = [
        (found.partition_index, found.committed_offset)
        for request in cluster.requests(OffsetCommitRequest)
        for found in request.topics[0].partitions
    ]
    assert sorted(offsets) == [(0, 1), (1, 1)], "what is done is committed before it is given up, once"
    assert coordinator.generation == 3, "it joins again after it has given a partition up"
    cluster.fill("t", b"kept")
    assert await values(cluster, consumer) == [b"kept"]
    coordinator.assigned = [A, B]
    coordinator.committed = {0: 0, 1: 1}
    await rebalanced(cluster, coordinator, consumer)
    cluster.fill("t", b"back", partition=1)
    assert await values(cluster, consumer) == [b"back"], "A does not begin again at what is committed"
    await consumer.close()


@virtual_test
async def test_records_come_while_a_cooperative_member_waits_for_the_others() -> None:
    cluster = filled(partitions=2)
    coordinator, config = cooperative(cluster)
    consumer = await started(cluster, topics("t"), config)
    assert await values(cluster, consumer) == [b"0", b"1"]
    coordinator.join_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000
    coordinator.heartbeat_errors = [ErrorCode.REBALANCE_IN_PROGRESS]
    joins = len(cluster.requests(JoinGroupRequest))
    while len(cluster.requests(JoinGroupRequest)) == joins:
        cluster.clock.advance(1_000)
        await values(cluster, consumer, 3)
    cluster.fill("t", b"meanwhile")
    assert await values(cluster, consumer) == [b"meanwhile"]
    assert not consumer.is_finished
    coordinator.join_errors = []
    while coordinator.generation == 1:
        cluster.clock.advance(1_000)
        await values(cluster, consumer, 3)
    await values(cluster, consumer)
    assert consumer.assignment == {A, B}
    await consumer.close()


@virtual_test
async def test_a_cooperative_member_that_was_forgotten_begins_where_the_group_has_committed() -> None:
    cluster = filled(partitions=1)
    coordinator, config = cooperative(cluster)
    coordinator.assigned = [A]
    consumer = await started(cluster, topics("t"), config)
    assert await values(cluster, consumer) == [b"0"]
    commits = len(cluster.requests(OffsetCommitRequest))
    coordinator.heartbeat_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    found: list[bytes] = []
    while coordinator.generation == 1:
        cluster.clock.advance(1_000)
        found += await values(cluster, consumer, 3)
    found += await values(cluster, consumer)
    assert found == [b"0"], "it comes again: another member may have had the partition"
    assert len(cluster.requests(OffsetCommitRequest)) == commits, "not with the new generation"
    await consumer.close()
