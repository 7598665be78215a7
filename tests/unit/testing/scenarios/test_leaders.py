from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.testing import Broker
from odradek.testing.scenarios import leader_move
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build


def test_a_client_sees_the_leader_move() -> None:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with RawClient(host, int(port)) as client:
            topics = [{"name": "t", "num_partitions": 2, "replication_factor": 1}]
            client.call(build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=10_000), 5)

            def produce() -> int:
                data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(b"v")}]}]
                answer = client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data), 9)
                return int(answer.responses[0].partition_responses[0].error_code)  # type: ignore[attr-defined]

            def leaders() -> dict[int, int]:
                (topic,) = client.call(MetadataRequest(topics=None), 9).topics  # type: ignore[attr-defined]
                return {part.partition_index: part.leader_id for part in topic.partitions}

            leader = leaders()[0]
            with leader_move(broker, "t", 0) as scenario:
                assert produce() == ErrorCode.NOT_LEADER_OR_FOLLOWER
                assert leaders() == {0: -1, 1: leader}
                assert leaders() == {0: leader, 1: leader}
                assert produce() == ErrorCode.NONE
            scenario.assert_called()
