"""How the services of one broker are connected: what one of them is given, another one has."""

from __future__ import annotations

from pathlib import Path

from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import in_process_broker
from tests.support.wire.requests import build


def test_a_producer_id_comes_from_the_controller_of_this_broker(tmp_path: Path) -> None:
    with in_process_broker(tmp_path) as broker:
        request = build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=0)
        answers = [broker.call(request, 4) for _ in range(2)]
        assert [answer.producer_id for answer in answers] == [0, 1]  # type: ignore[attr-defined]


def test_the_group_coordinator_uses_the_topic_that_the_admin_manager_creates(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, {"offsets.topic.num.partitions": "1"}) as broker:
        services = broker.services
        find = build(ApiKey.FIND_COORDINATOR, key="g", key_type=0)
        broker.call(find, 3)
        assert broker.settle(lambda: services.metadata_cache.contains(GROUP_METADATA_TOPIC))
        assert broker.call(find, 3).node_id == services.broker_id  # type: ignore[attr-defined]
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
        commit = build(ApiKey.OFFSET_COMMIT, group_id="g", topics=topics)
        [topic] = broker.call(commit, 8).topics  # type: ignore[attr-defined]
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # "t" is not in the cache
