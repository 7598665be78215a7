from __future__ import annotations

from odradek.controller.admin.policies import CreateTopicMetadata, CreateTopicPolicy, Policies, PolicyViolation
from odradek.controller.znodes import znodes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import CreatePartitionsTopic
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster, wanted


class _Recording(CreateTopicPolicy):
    def __init__(self) -> None:
        self.asked: list[CreateTopicMetadata] = []

    def validate(self, metadata: CreateTopicMetadata, /) -> None:
        self.asked.append(metadata)
        if metadata.topic == "refused":
            raise PolicyViolation("not this one")


@async_test
async def test_a_policy_sees_what_the_request_leaves_open_and_refuses_its_topic_only() -> None:
    async with controller_cluster() as cluster:
        policy = _Recording()
        cluster.policies = Policies(cluster.clock, policy)
        await cluster.start(0)
        admin = cluster.admin(num_partitions=2)
        results = await admin.create_topics(
            [
                wanted("a", configs={"retention.ms": "7"}),
                wanted("refused", 1, 1),
                wanted("b", assignments={0: [0], 1: [0]}),
            ],
            timeout_ms=1000,
        )
        assert (results["refused"].error_code, results["refused"].error_message) == (
            ErrorCode.POLICY_VIOLATION,
            "not this one",
        )
        assert results["a"].is_success
        assert results["b"].is_success
        assert not await cluster.client.exists(znodes.topic_path("refused"))
        await admin.create_topics([wanted("validated", 3, 1)], timeout_ms=1000, validate_only=True)
        assert await admin.auto_create_topics([wanted("refused", 1, 1)]) == {"refused": ErrorCode.POLICY_VIOLATION}
        assert policy.asked == [
            CreateTopicMetadata("a", 2, 1, None, {"retention.ms": "7"}),
            CreateTopicMetadata("refused", 1, 1, None, {}),
            CreateTopicMetadata("b", None, None, {0: (0,), 1: (0,)}, {}),
            CreateTopicMetadata("validated", 3, 1, None, {}),
            CreateTopicMetadata("refused", 1, 1, None, {}),
        ]


@async_test
async def test_a_policy_is_not_asked_about_topics_that_cannot_be_created_nor_about_more_partitions() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0]})
        policy = _Recording()
        cluster.policies = Policies(cluster.clock, policy)
        admin = cluster.admin()
        await admin.create_topics([wanted("t", 1, 1), wanted("u", 1, 2), wanted("no/name", 1, 1)], timeout_ms=1000)
        more = [CreatePartitionsTopic(name="t", count=2, assignments=None)]
        assert (await admin.create_partitions(more, timeout_ms=1000))["t"].is_success
        assert policy.asked == []
