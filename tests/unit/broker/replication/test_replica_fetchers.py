from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.fetch.fetch_context import TOPIC_ID_VERSION
from odradek.broker.fetch.follower_waits import SHORT_FOR_MS, SHORT_WAIT_MS
from odradek.broker.replication.replica_fetchers import fetcher_index
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.in_process.replication.following import FOLLOWER_ID, LEADER_ID, Following
from tests.support.in_process.replication.replicas import TOPIC_ID, TP

PARTITIONS = [TopicPartition("t", index) for index in range(4)]


@pytest.mark.parametrize(
    ("partition", "count", "index"),
    [
        (TopicPartition("t", 0), 1, 0),
        (TopicPartition("t", 0), 4, 31 * 116 % 4),
        (TopicPartition("t", 3), 4, (31 * 116 + 3) % 4),
        # "orders" hashes to -1008770331, and 31 times that overflows.
        (TopicPartition("orders", 5), 7, abs((31 * -1008770331 + 5 + 2**31) % 2**32 - 2**31) % 7),
    ],
)
def test_the_name_of_a_partition_says_which_fetcher_it_belongs_to(
    partition: TopicPartition, count: int, index: int
) -> None:
    assert fetcher_index(partition, count) == index


def test_the_number_without_a_positive_counterpart_counts_as_zero() -> None:
    # "" hashes to 0, so the partition alone decides.
    assert fetcher_index(TopicPartition("", -(2**31)), 7) == 0


@async_test
async def test_partitions_of_one_leader_share_a_fetcher(following: Following) -> None:
    for partition in PARTITIONS:
        following.lead(partition)
    await following.turns()
    assert len(following.links) == 1
    assert following.client_ids == [f"broker-{FOLLOWER_ID}-fetcher-0"]
    following.append(b"a", tp=PARTITIONS[3])
    await following.advance(500)
    assert following.log(PARTITIONS[3]).log_end_offset == 1


@async_test
async def test_as_many_fetchers_as_are_set_follow_one_leader(tmp_path: Path) -> None:
    following = Following(tmp_path, fetcher_count=2)
    for partition in PARTITIONS:
        following.lead(partition)
    assert following.client_ids == [f"broker-{FOLLOWER_ID}-fetcher-{index}" for index in (0, 1)]
    following.shutdown()
    assert all(link.is_closed for link in following.links)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_topic_is_fetched_by_name_after_a_controller_that_sends_no_id(tmp_path: Path, epoch: int) -> None:
    """With a new epoch or with the same one. The log keeps its id."""

    @async_test
    async def scenario() -> None:
        following = Following(tmp_path)
        following.lead()
        await following.turns()
        if epoch:
            following.tell_leader(epoch=epoch)
        follow = following.follower.follow
        assert follow(TP, leader=LEADER_ID, epoch=epoch, partition_epoch=epoch, topic_id=ZERO_UUID) == ErrorCode.NONE
        following.append(b"a")
        for _ in range(3):
            await following.advance(1_000)
        versions = [version for _, version in following.link.requests]
        assert versions[0] >= TOPIC_ID_VERSION > versions[-1]
        assert (following.log().log_end_offset, following.log().topic_id) == (1, TOPIC_ID)
        following.shutdown()

    scenario()


@async_test
async def test_a_fetcher_ends_with_its_last_partition(following: Following) -> None:
    for partition in PARTITIONS[:2]:
        following.lead(partition)
    following.fetchers.remove(PARTITIONS[:1])
    assert not following.link.is_closed
    following.fetchers.remove(PARTITIONS[1:2])
    assert following.link.is_closed


@async_test
async def test_a_new_epoch_of_the_only_partition_keeps_the_fetcher(following: Following) -> None:
    following.lead()
    await following.turns()
    following.lead(epoch=1)
    await following.turns()
    assert len(following.links) == 1
    assert not following.link.is_closed


@async_test
async def test_another_leader_is_followed_by_another_fetcher(following: Following) -> None:
    following.lead()
    following.follower.follow(leader=2, epoch=1)
    assert len(following.links) == 2
    assert [link.is_closed for link in following.links] == [True, False]


@async_test
async def test_a_leader_that_listens_elsewhere_gets_a_new_link(following: Following) -> None:
    following.lead()
    following.port += 1
    following.lead(epoch=1)
    assert [link.is_closed for link in following.links] == [True, False]


@async_test
async def test_partitions_of_a_leader_with_a_new_address_are_followed_there(following: Following) -> None:
    """A listener may be changed while the broker runs, and then only some of its partitions have a new epoch."""
    following.lead(PARTITIONS[0])
    following.lead(PARTITIONS[1])
    await following.turns()
    following.port += 1
    following.lead(PARTITIONS[1], epoch=1)
    following.append(b"a", tp=PARTITIONS[0])
    following.append(b"b", tp=PARTITIONS[1])
    await following.turns()
    assert [following.log(tp).log_end_offset for tp in PARTITIONS[:2]] == [1, 1]


@async_test
async def test_a_leader_without_a_listener_for_brokers_is_not_followed(following: Following) -> None:
    following.port = 0
    following.lead()
    assert not following.links


@async_test
async def test_partitions_move_when_the_number_of_fetchers_changes(following: Following) -> None:
    for partition in PARTITIONS:
        following.lead(partition)
    following.append(b"a")
    await following.turns()
    following.fetchers.resize()
    assert len(following.links) == 1, "nothing has changed"
    following.fetcher_count = 2
    following.fetchers.resize()
    following.append(b"b")
    await following.turns()
    assert [link.is_closed for link in following.links] == [True, False, False]
    assert following.log().log_end_offset == 2
    following.fetcher_count = 1
    following.fetchers.resize()
    await following.turns()
    assert all(following.is_followed(partition) for partition in PARTITIONS)


@async_test
async def test_a_parked_partition_stays_parked_when_the_number_changes(following: Following) -> None:
    following.lead()
    following.tell_leader(epoch=1)
    await following.turns()
    assert not following.is_followed()
    following.fetcher_count = 2
    following.fetchers.resize()
    assert not following.is_followed()


@async_test
async def test_before_a_shutdown_fetches_continue_and_none_begin_in_a_new_epoch(
    following: Following,
) -> None:
    one, other, late = PARTITIONS[:3]
    for partition in (one, other):
        following.lead(partition)
    await following.turns()
    following.fetchers.begin_shutdown()
    following.lead(other, epoch=1)
    following.lead(late)
    for partition in (one, other, late):
        following.append(b"a", tp=partition)
    await following.advance(500)
    assert [following.log(partition).log_end_offset for partition in (one, other, late)] == [1, 0, 0]


@async_test
async def test_after_a_shutdown_nothing_is_followed(following: Following) -> None:
    following.lead()
    following.follower.manager.shutdown()
    following.tell_follower(TP, epoch=1)
    assert [link.is_closed for link in following.links] == [True]


@pytest.mark.parametrize("first", ["leader", "follower"])
@async_test
async def test_a_partition_that_is_added_during_a_fetch_is_committed_soon(following: Following, first: str) -> None:
    """The fetch of another partition waits for half a second, whichever broker gets its LeaderAndIsr first."""
    following.lead()
    await following.advance(SHORT_FOR_MS)
    added = PARTITIONS[1]
    tell = [following.tell_leader, following.tell_follower]
    for each in tell if first == "leader" else reversed(tell):
        each(added)
        await following.advance(SHORT_WAIT_MS - 1)
    following.append(b"a", tp=added)
    await following.advance(SHORT_WAIT_MS)
    assert following.leader_log(added).high_watermark == 1
