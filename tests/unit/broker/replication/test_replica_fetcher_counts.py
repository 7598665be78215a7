"""What a fetcher counts for the metrics."""

from __future__ import annotations

from odradek.broker.meters.broker_topic_stats import BrokerTopicStats
from tests.support.async_test import async_test
from tests.support.disks.logs import append, batch
from tests.support.in_process.replication.following import FOLLOWER_ID, Following
from tests.support.in_process.replication.replicas import TP


@async_test
async def test_bytes_of_a_partition_that_is_being_added_here_are_counted_again(following: Following) -> None:
    stats = following.follower.manager.partitions.topic_stats = BrokerTopicStats()
    following.lead()
    following.append(b"a")
    await following.turns()
    assert (stats.replication_bytes_in, stats.reassignment_bytes_in) == (len(batch(b"a")), 0)
    following.follower.manager.partition(TP).adding_replicas = [FOLLOWER_ID]
    following.append(b"b")
    await following.advance(500)
    assert (stats.replication_bytes_in, stats.reassignment_bytes_in) == (2 * len(batch(b"a")), len(batch(b"b")))


@async_test
async def test_a_partition_is_failed_until_the_controller_names_its_leader_again(following: Following) -> None:
    failed = following.follower.manager.partitions.failed_partitions
    following.lead()
    await following.turns()
    append(following.log(), b"not from the leader")
    following.append(b"a")
    await following.turns()
    assert failed == {TP}
    following.lead(epoch=1)
    assert failed == set()
