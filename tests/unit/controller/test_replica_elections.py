from __future__ import annotations

import pytest

from odradek.controller.controller import FIRST_LEADER_REBALANCE_MS
from odradek.controller.events import ElectionTrigger, ElectionType
from odradek.controller.replica_elections import NAMED_MAX, on_replica_election
from odradek.controller.tree.metadata_tree import Create
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import write_entity_config
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster

T0 = TopicPartition("t", 0)


async def strayed(cluster: ControllerCluster) -> None:
    """t-0 prefers broker 1, which was away and is in sync again; broker 0 leads."""
    await cluster.start(0)
    await cluster.start(1)
    topic_id = (await cluster.create("t", {0: [1, 0]})).topic_id
    await cluster.kill(1)
    await cluster.start(1)
    partition = RequestPartitionData(
        partition_index=0,
        leader_epoch=1,
        partition_epoch=1,
        new_isr_with_epochs=[BrokerState(broker_id=0), BrokerState(broker_id=1)],
    )
    request = AlterPartitionRequest(
        broker_id=0,
        broker_epoch=cluster.controller.broker_epoch,
        topics=[RequestTopicData(topic_id=topic_id, partitions=[partition])],
    )
    await cluster.controller.alter_partition(request, 3)
    assert await cluster.state("t") == (0, (0, 1), 1, 2)


async def elect(cluster: ControllerCluster, partition: TopicPartition, kind: ElectionType) -> int | ErrorCode | None:
    result = (await cluster.controller.elect_leaders([partition], kind)).get(partition)
    return result.code if isinstance(result, KafkaError) else result


@async_test
async def test_a_preferred_leader_gets_its_partition_back() -> None:
    async with controller_cluster() as cluster:
        await strayed(cluster)
        assert await elect(cluster, T0, ElectionType.PREFERRED) == 1
        assert await cluster.state("t") == (1, (0, 1), 2, 3)
        assert await elect(cluster, T0, ElectionType.PREFERRED) is ErrorCode.ELECTION_NOT_NEEDED


@async_test
async def test_elections_are_logged_with_the_words_of_apache_kafka(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [1, 0]})
        await cluster.kill(1)
        caplog.clear()
        caplog.set_level("INFO", "odradek.controller")
        await elect(cluster, T0, ElectionType.PREFERRED)
        await cluster.client.tree.run(Create(znodes.PREFERRED_REPLICA_ELECTION, znodes.encode_partitions([T0])))
        await cluster.settle()
    lines = [record.getMessage() for record in caplog.records if "replica leader election" in record.getMessage()]
    assert lines[:2] == [
        "Starting replica leader election (PREFERRED) for partitions t-0 triggered by AdminClientTriggered",
        "Starting replica leader election (PREFERRED) for partitions t-0 triggered by ZkTriggered",
    ]
    (failed,) = lines[2:]
    assert failed.startswith("Error completing replica leader election (PREFERRED) for partition t-0: ")


@async_test
async def test_an_election_of_many_partitions_names_the_first(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "odradek.controller")
    async with controller_cluster() as cluster:
        await cluster.start(0)
        controllership = cluster.controller._controllership
        for count in (NAMED_MAX, NAMED_MAX + 1):
            caplog.clear()
            partitions = [TopicPartition("none", index) for index in range(count)]
            await on_replica_election(controllership, partitions, ElectionType.UNCLEAN, ElectionTrigger.ADMIN_CLIENT)
            (line,) = [each.getMessage() for each in caplog.records if "Starting replica" in each.getMessage()]
            assert line.count("none-") == NAMED_MAX
            assert (" and 1 more " in line) == (count > NAMED_MAX)


@async_test
async def test_refused_elections() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        await cluster.create("t", {0: [1, 0]})
        await cluster.kill(1)
        assert await elect(cluster, T0, ElectionType.PREFERRED) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await elect(cluster, T0, ElectionType.UNCLEAN) is ErrorCode.ELECTION_NOT_NEEDED
        unknown = TopicPartition("none", 0)
        assert await elect(cluster, unknown, ElectionType.UNCLEAN) is None
        await cluster.create("gone", {0: [1]})
        await cluster.client.create_recursive(znodes.delete_topic_path("gone"))
        await cluster.settle()
        gone = TopicPartition("gone", 0)
        assert await elect(cluster, gone, ElectionType.PREFERRED) is ErrorCode.INVALID_TOPIC_EXCEPTION


@async_test
async def test_a_partition_that_never_had_a_leader_has_none_to_elect_until_a_replica_is_live() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [1], 1: [1]})
        assert await elect(cluster, T0, ElectionType.PREFERRED) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert await elect(cluster, T0, ElectionType.UNCLEAN) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


@async_test
async def test_an_administrator_may_elect_an_unclean_leader() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        topic_id = (await cluster.create("t", {0: [1, 0]})).topic_id
        partition = RequestPartitionData(partition_index=0, new_isr_with_epochs=[BrokerState(broker_id=1)])
        request = AlterPartitionRequest(
            broker_id=1,
            broker_epoch=cluster.brokers[1].controller.broker_epoch,
            topics=[RequestTopicData(topic_id=topic_id, partitions=[partition])],
        )
        await cluster.controller.alter_partition(request, 3)
        await cluster.kill(1)
        assert (await cluster.state("t"))[:2] == (-1, (1,))
        assert await elect(cluster, T0, ElectionType.UNCLEAN) == 0
        assert (await cluster.state("t"))[:2] == (0, (0,))


@async_test
async def test_enabling_unclean_election_for_a_topic_elects_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "odradek.controller")
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        topic_id = (await cluster.create("t", {0: [1, 0]})).topic_id
        partition = RequestPartitionData(partition_index=0, new_isr_with_epochs=[BrokerState(broker_id=1)])
        request = AlterPartitionRequest(
            broker_id=1,
            broker_epoch=cluster.brokers[1].controller.broker_epoch,
            topics=[RequestTopicData(topic_id=topic_id, partitions=[partition])],
        )
        await cluster.controller.alter_partition(request, 3)
        await cluster.kill(1)
        assert (await cluster.state("t"))[:2] == (-1, (1,))
        await write_entity_config(cluster.client, "topics/t", {"unclean.leader.election.enable": "true"})
        cluster.controller.enable_topic_unclean_leader_election("t")
        await cluster.settle()
        assert (await cluster.state("t"))[:2] == (0, (0,))
        assert "Unclean leader election has been enabled for topic t" in caplog.messages
        cluster.controller.enable_default_unclean_leader_election()
        await cluster.settle()
        assert "Unclean leader election has been enabled by default" in caplog.messages


@async_test
async def test_leadership_is_balanced_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "odradek.controller")
    async with controller_cluster() as cluster:
        await strayed(cluster)
        cluster.clock.advance(FIRST_LEADER_REBALANCE_MS)
        cluster.timer.advance()
        await cluster.settle()
        assert (await cluster.state("t"))[0] == 1
        assert "Processing automatic preferred replica leader election" in caplog.messages
        # And again, every five minutes.
        assert cluster.timer.size == 1


@async_test
async def test_a_small_imbalance_is_left_alone() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0, leader_imbalance_per_broker_percentage=100)
        await cluster.start(1)
        await cluster.create("t", {0: [1, 0]})
        await cluster.kill(1)
        await cluster.start(1)
        cluster.clock.advance(FIRST_LEADER_REBALANCE_MS)
        cluster.timer.advance()
        await cluster.settle()
        assert (await cluster.state("t"))[0] == 0


@async_test
async def test_a_legacy_election_in_the_tree() -> None:
    async with controller_cluster() as cluster:
        await strayed(cluster)
        data = znodes.encode_partitions([T0, TopicPartition("none", 0)])
        for leader in (1, 1):
            await cluster.client.tree.run(Create(znodes.PREFERRED_REPLICA_ELECTION, data))
            await cluster.settle()
            assert (await cluster.state("t"))[0] == leader
            assert not await cluster.client.exists(znodes.PREFERRED_REPLICA_ELECTION)


@pytest.mark.parametrize("data", [b"junk", b"{}", b'{"partitions":[7]}'])
@async_test
async def test_a_legacy_election_that_cannot_be_read_is_removed_and_the_next_one_is_noticed(data: bytes) -> None:
    async with controller_cluster() as cluster:
        await strayed(cluster)
        for written in (data, znodes.encode_partitions([T0])):
            await cluster.client.tree.run(Create(znodes.PREFERRED_REPLICA_ELECTION, written))
            await cluster.settle()
            assert not await cluster.client.exists(znodes.PREFERRED_REPLICA_ELECTION)
        assert (await cluster.state("t"))[0] == 1


@async_test
async def test_legacy_requests_that_cannot_be_read_stop_no_failover() -> None:
    async with controller_cluster() as cluster:
        await strayed(cluster)
        cluster.brokers[0].controller.put = lambda event: None  # It hears of nothing any more.
        for path in (znodes.PREFERRED_REPLICA_ELECTION, znodes.REASSIGN_PARTITIONS):
            await cluster.client.tree.run(Create(path, b"{}"))
        await cluster.kill(0)
        assert not await cluster.client.exists(znodes.PREFERRED_REPLICA_ELECTION)
        assert not await cluster.client.exists(znodes.REASSIGN_PARTITIONS)


@async_test
async def test_the_next_controller_holds_a_pending_election() -> None:
    async with controller_cluster() as cluster:
        await strayed(cluster)
        cluster.brokers[0].controller.put = lambda event: None  # It hears of nothing any more.
        await cluster.client.tree.run(Create(znodes.PREFERRED_REPLICA_ELECTION, znodes.encode_partitions([T0])))
        await cluster.kill(0)
        assert (await cluster.state("t"))[0] == 1
        assert not await cluster.client.exists(znodes.PREFERRED_REPLICA_ELECTION)
