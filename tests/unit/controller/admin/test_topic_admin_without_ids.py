"""Topics under an inter-broker protocol that has no ids for them."""

from __future__ import annotations

import pytest

from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic
from odradek.protocol.metadata_version import MetadataVersion
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster


@async_test
async def test_topics_get_no_id_from_a_protocol_without_them_and_one_later() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0, metadata_version=MetadataVersion.IBP_2_7_IV2)
        admin = cluster.admin(metadata_version=MetadataVersion.IBP_2_7_IV2)
        created = await admin.create_topics(
            [CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=1000
        )
        await cluster.settle()
        assert created["t"].topic_id == ZERO_UUID
        assert await stored_id(cluster, "t") is None
        with pytest.raises(KafkaError) as refusal:
            await admin.create_topic_with_assignment("t", {0: [0]}, {})
        assert refusal.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        await cluster.kill(0)
        await cluster.start(0)
        given = await stored_id(cluster, "t")
        assert given is not None
        await cluster.kill(0)
        await cluster.start(0, metadata_version=MetadataVersion.IBP_2_7_IV2)
        await cluster.admin().create_partitions(
            [CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=1000
        )
        assert await stored_id(cluster, "t") == given, "what was there stays there"


async def stored_id(cluster: ControllerCluster, topic: str) -> bytes | None:
    (found,) = await cluster.client.topic_assignments([topic])
    return found.topic_id
