from __future__ import annotations

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.broker.tools.admin.client.offset_lookups import FoundOffset, OffsetLookups
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, outcome, topic
from tests.support.clusters.admin_groups import AdminGroups

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


def test_each_partition_is_looked_up_at_its_leader(cluster: AdminCluster, groups: AdminGroups) -> None:
    cluster.has(topic("t", [1], [3]))

    async def find(client: AdminClient) -> dict[TopicPartition, FoundOffset]:
        return await OffsetLookups(client).find({T0: -2, T1: 6_000, GONE: -1})

    (found,) = outcome(find)
    assert found == {
        T0: FoundOffset(0, 10),
        T1: FoundOffset(0, -1),
        GONE: FoundOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    assert sorted(broker_id for broker_id, _ in cluster.requests(ListOffsetsRequest)) == [1, 3]
    assert {request.replica_id for _, request in cluster.requests(ListOffsetsRequest)} == {-1}


def test_an_error_can_end_the_command(cluster: AdminCluster, groups: AdminGroups) -> None:
    cluster.has(topic("t", [1]))
    assert outcome(lambda client: OffsetLookups(client).at([T0], -1)) == [{T0: 100}]
    assert outcome(lambda client: OffsetLookups(client).at([GONE], -1), status=1) == []
