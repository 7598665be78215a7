"""A broker with an old inter-broker protocol: APIs that it does not advertise, and requests that it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.apis.version_gates import TRANSACTIONAL
from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes import znodes
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker, no_bugs_logged
from tests.support.in_process.security.scripted_authorizer import ScriptedAuthorizer
from tests.support.wire.requests import build

OLD_FORMAT = {"log.message.format.version": "0.10.2"}


def code_of(broker: InProcessBroker, key: ApiKey, version: int, **fields: object) -> ErrorCode:
    return ErrorCode(broker.call(build(key, **fields), version).error_code)  # type: ignore[attr-defined]


def offered(broker: InProcessBroker) -> tuple[set[int], int]:
    answer = broker.call(build(ApiKey.API_VERSIONS, client_software_name="a", client_software_version="1"), 3)
    return {offer.api_key for offer in answer.api_keys}, answer.finalized_features_epoch  # type: ignore[attr-defined]


def test_transactions_are_neither_advertised_nor_served_before_0_11(tmp_path: Path) -> None:
    with in_process_broker(tmp_path / "new") as broker:
        all_keys, epoch = offered(broker)
        assert all_keys >= TRANSACTIONAL
        assert epoch == 0
    with (
        no_bugs_logged(),
        in_process_broker(tmp_path / "old", {"inter.broker.protocol.version": "0.10.2", **OLD_FORMAT}) as broker,
    ):
        assert offered(broker) == (all_keys - TRANSACTIONAL, -1)
        refused = code_of(
            broker, ApiKey.END_TXN, 3, transactional_id="t", producer_id=1, producer_epoch=0, committed=True
        )
        assert refused is ErrorCode.UNSUPPORTED_VERSION


def test_the_epoch_of_features_is_that_of_their_node(tmp_path: Path) -> None:
    with in_process_broker(tmp_path) as broker:
        cache = broker.services.metadata_cache
        assert broker.settle(lambda: cache.finalized_features_epoch == 0)
        broker.run(broker.services.controller.client.tree.run(SetData(znodes.FEATURE, znodes.encode_feature())))
        assert broker.settle(lambda: cache.finalized_features_epoch == 1)
        assert offered(broker)[1] == 1


@pytest.mark.parametrize(("version", "is_refused"), [("2.2", True), ("2.3", False)])
def test_members_name_their_instance_since_2_3(tmp_path: Path, version: str, is_refused: bool) -> None:
    with no_bugs_logged(), in_process_broker(tmp_path, {"inter.broker.protocol.version": version}) as broker:
        fields = {"group_id": "g", "generation_id": 1, "member_id": "m"}
        static = code_of(broker, ApiKey.HEARTBEAT, 4, group_instance_id="i", **fields)
        assert (static is ErrorCode.UNSUPPORTED_VERSION) is is_refused
        assert (
            code_of(broker, ApiKey.HEARTBEAT, 4, group_instance_id=None, **fields) is not ErrorCode.UNSUPPORTED_VERSION
        )


@pytest.mark.parametrize(("version", "has_id"), [("2.7", False), ("2.8", True)])
def test_logs_have_topic_ids_since_2_8(tmp_path: Path, version: str, has_id: bool) -> None:
    with in_process_broker(tmp_path, {"inter.broker.protocol.version": version}) as broker:
        log = broker.services.log_manager.get_or_create_log(TopicPartition("t", 0), b"\x01" * 16, is_new=True)
        assert log.topic_id == (b"\x01" * 16 if has_id else None)


def test_a_commit_of_a_static_member_is_refused_before_2_3_if_the_client_may_commit(tmp_path: Path) -> None:
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}]}]
    commit = build(ApiKey.OFFSET_COMMIT, group_id="g", group_instance_id="i", topics=topics)
    with no_bugs_logged(), in_process_broker(tmp_path, {"inter.broker.protocol.version": "2.2"}) as broker:
        codes = []
        for authorizer in (None, ScriptedAuthorizer()):
            broker.services.authorizer = authorizer
            answer = broker.call(commit, 7)
            codes.append(answer.topics[0].partitions[0].error_code)  # type: ignore[attr-defined]
        assert codes == [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_AUTHORIZATION_FAILED]


def test_topics_have_no_ids_before_2_8(tmp_path: Path) -> None:
    with no_bugs_logged(), in_process_broker(tmp_path, {"inter.broker.protocol.version": "2.7"}) as broker:
        broker.create_topic("t")
        assert broker.topic_id("t") == ZERO_UUID
        assert not (tmp_path / "t-0" / "partition.metadata").exists()


def test_a_log_has_its_id_again_when_the_protocol_has_ids_again(tmp_path: Path) -> None:
    with in_process_broker(tmp_path) as broker:
        broker.create_topic("t")
        topic_id = broker.topic_id("t")
    metadata = (tmp_path / "t-0" / "partition.metadata").read_bytes()
    with no_bugs_logged(), in_process_broker(tmp_path, {"inter.broker.protocol.version": "2.7"}) as broker:
        assert broker.settle(lambda: broker.services.metadata_cache.contains("t"))
        assert broker.topic_id("t") == ZERO_UUID
        assert not (tmp_path / "t-0" / "partition.metadata").exists()
    with no_bugs_logged(), in_process_broker(tmp_path) as broker:
        assert broker.settle(lambda: broker.services.metadata_cache.contains("t"))
        assert broker.topic_id("t") == topic_id
    assert (tmp_path / "t-0" / "partition.metadata").read_bytes() == metadata


@pytest.mark.parametrize(("version", "is_over"), [("0.11.0", True), ("1.0", False)])
def test_a_broker_survives_a_log_directory_since_1_0(tmp_path: Path, version: str, is_over: bool) -> None:
    settings = {"inter.broker.protocol.version": version, "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    with in_process_broker(tmp_path, settings) as broker:
        (first, *_) = broker.services.log_manager.live_log_dirs
        first.fail("test", OSError("the disk is gone"))
        broker.settle(lambda: broker.server.failed.done())
        assert broker.server.failed.done() is is_over
        if is_over:
            assert isinstance(broker.server.failed.exception(), OSError)
