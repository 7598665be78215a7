"""A broker from start to stop, without sockets: the files that it writes and reads again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.keys.general import ACL_AUTHORIZER
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.server import KafkaServer
from odradek.controller.admin.policies import CreateTopicMetadata, CreateTopicPolicy, PolicyViolation
from odradek.controller.tree.metadata_tree import SetData
from odradek.controller.znodes.config_nodes import change_entity_config
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import (
    InProcessBroker,
    NoSockets,
    in_process_broker,
    no_bugs_logged,
)
from tests.support.wire.requests import batch, build


def produce(broker: InProcessBroker, topic: str) -> int:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    response = broker.call(build(ApiKey.PRODUCE, acks=-1, topic_data=data), 11)
    answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert answer.error_code == 0
    return answer.base_offset  # type: ignore[no-any-return]


def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    with no_bugs_logged():
        with in_process_broker(tmp_path) as broker:
            broker.create_topic("t", configs={"retention.ms": "77"})
            assert produce(broker, "t") == 0
            cluster_id, topic_id = broker.services.cluster_id, broker.topic_id("t")
        with in_process_broker(tmp_path) as broker:
            assert broker.settle(lambda: broker.services.metadata_cache.contains("t"))
            assert (broker.services.cluster_id, broker.topic_id("t")) == (cluster_id, topic_id)
            hosted = next(broker.services.replica_manager.online_partitions())
            assert hosted.log is not None
            assert hosted.log.config.retention_ms == 77
            assert broker.settle(lambda: hosted.is_leader)
            assert produce(broker, "t") == 1


def test_stop_writes_the_clean_shutdown_marker(tmp_path: Path) -> None:
    with in_process_broker(tmp_path):
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_stop_begins_the_shutdown_of_the_fetchers_before_the_controlled_shutdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    async def controlled_shutdown(*arguments: object) -> None:
        steps.append("controlled shutdown")

    with in_process_broker(tmp_path) as broker:
        fetchers = broker.services.replica_manager.fetchers
        monkeypatch.setattr(type(fetchers), "begin_shutdown", lambda self: steps.append("fetchers"))
        monkeypatch.setattr(type(broker.links), "controlled_shutdown", controlled_shutdown)
    assert steps == ["fetchers", "controlled shutdown"]


def test_directory_of_another_broker_is_refused_and_left_alone(tmp_path: Path) -> None:
    with in_process_broker(tmp_path):
        pass
    with pytest.raises(StartupError, match=r"(?s)7.*0|0.*7"):
        InProcessBroker(tmp_path, {"broker.id": "7"})
    with in_process_broker(tmp_path):
        pass


def test_directory_in_use_is_refused(tmp_path: Path) -> None:
    with in_process_broker(tmp_path), pytest.raises(StartupError, match="lock"):
        InProcessBroker(tmp_path)


@pytest.mark.parametrize("entity", ["topics/t", "brokers/0", "users/alice"])
def test_a_stored_config_with_a_value_that_is_no_string_refuses_the_start(tmp_path: Path, entity: str) -> None:
    """With the defaults in its place, records could be deleted that the topic was to keep."""
    with in_process_broker(tmp_path) as broker:
        broker.create_topic("t", configs={"cleanup.policy": "compact"})
        client, data = broker.services.controller.client, b'{"config":{"cleanup.policy":"compact","other":2}}'
        broker.run(client.create_recursive(f"/config/{entity}"))
        broker.run(client.tree.run(SetData(f"/config/{entity}", data)))
    with pytest.raises(StartupError, match=f"{entity}.*strings: other"):
        InProcessBroker(tmp_path)


def test_request_that_was_going_on_makes_no_log_after_the_stop(tmp_path: Path) -> None:
    """The directory is unlocked by then, and another broker may have taken it."""
    broker = InProcessBroker(tmp_path)
    configs_are_read = asyncio.Event()

    async def overrides(topics: Sequence[str]) -> dict[str, dict[str, str]]:
        await configs_are_read.wait()
        return {}

    broker.services.topic_overrides = overrides
    state = {"leader": 0, "isr": [0], "replicas": [0], "is_new": True}
    topics = [{"topic_name": "t", "topic_id": b"t" * 16, "partition_states": [state]}]
    broker.send(build(ApiKey.LEADER_AND_ISR, controller_epoch=1, broker_epoch=-1, topic_states=topics), 7)
    broker.run(broker.server.stop())
    configs_are_read.set()
    broker.settle((tmp_path / "t-0").exists)
    assert not (tmp_path / "t-0").exists()
    broker.loop.close()


def test_stop_before_the_start_does_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        await KafkaServer(BrokerConfig({"log.dirs": str(tmp_path)})).stop()

    asyncio.run(scenario())


TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


@pytest.mark.parametrize(
    ("resource", "changes"),
    [
        ((TOPIC, "t"), [("min.insync.replicas", DELETE, None)]),
        ((BROKER, ""), [("min.insync.replicas", SET, "1")]),
    ],
)
def test_high_watermark_rises_when_fewer_replicas_have_to_be_in_sync(
    tmp_path: Path, resource: tuple[int, str], changes: list[tuple[str, int, str | None]]
) -> None:
    """And nobody appends or fetches: see `high_watermark_reviews`."""
    with in_process_broker(tmp_path) as broker, no_bugs_logged():
        configs = {"min.insync.replicas": "2"}
        broker.create_topic("t", configs=configs if resource[0] == TOPIC else {})
        if resource[0] == BROKER:
            change_configs(broker, resource, [("min.insync.replicas", SET, "2")])
        state = {"leader": 0, "leader_epoch": 5, "partition_epoch": 5, "isr": [0], "replicas": [0, 1]}
        topics = [{"topic_name": "t", "topic_id": broker.topic_id("t"), "partition_states": [state]}]
        broker.call(build(ApiKey.LEADER_AND_ISR, controller_epoch=1, broker_epoch=-1, topic_states=topics), 7)
        data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(b"a")}]}]
        broker.call(build(ApiKey.PRODUCE, acks=1, topic_data=data), 11)
        (hosted,) = broker.services.replica_manager.online_partitions()
        log = hosted.log
        assert log is not None
        assert log.config.min_insync_replicas == 2
        assert log.high_watermark == 0
        change_configs(broker, resource, changes)
        assert broker.settle(lambda: log.high_watermark == 1)


@pytest.mark.parametrize(
    "name", ["max.connections", "listener.name.plaintext.max.connections", "max.connections.per.ip.overrides"]
)
def test_sockets_apply_limits_that_change(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[str] = []
    monkeypatch.setattr(NoSockets, "limits_changed", lambda self: changes.append(name))
    value = "192.0.2.1:5" if name.endswith("overrides") else "5"
    configs = [{"name": name, "config_operation": SET, "value": value}]
    asked = [{"resource_type": BROKER, "resource_name": "", "configs": configs}]
    with in_process_broker(tmp_path) as broker, no_bugs_logged():
        assert changes == []
        broker.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=asked), 1)
        assert broker.settle(lambda: bool(changes))


def test_quotas_of_addresses_come_to_the_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas: list[tuple[str | None, float | None]] = []
    monkeypatch.setattr(NoSockets, "update_ip_connection_rate_quota", lambda self, *quota: quotas.append(quota))

    async def store(broker: InProcessBroker, ip: str, configs: dict[str, str]) -> None:
        await change_entity_config(broker.services.controller.client, f"ips/{ip}", configs)

    with in_process_broker(tmp_path) as broker, no_bugs_logged():
        for ip, configs, quota in (
            ("192.0.2.1", {"connection_creation_rate": "7"}, ("192.0.2.1", 7)),
            ("<default>", {"connection_creation_rate": "8"}, (None, 8)),
            ("<default>", {}, (None, None)),
        ):
            broker.run(store(broker, ip, configs))
            assert broker.settle(lambda: len(quotas) == 1)
            assert quotas.pop() == quota
    with in_process_broker(tmp_path) as broker, no_bugs_logged():
        assert ("192.0.2.1", 7) in quotas, "also at the start"


class Watched(CreateTopicPolicy):
    """A policy that refuses the topic `refused`, and says what was called."""

    calls: ClassVar[list[str]] = []

    def configure(self, configs: Mapping[str, str], /) -> None:
        self.calls.append(f"configured with {configs['my.key']}")

    def validate(self, metadata: CreateTopicMetadata, /) -> None:
        self.calls.append(metadata.topic)
        if metadata.topic == "refused":
            raise PolicyViolation("no")

    def close(self) -> None:
        self.calls.append("closed")


def test_a_policy_is_configured_asked_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("watched_policies")
    vars(module).update(Watched=Watched)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    Watched.calls.clear()
    settings = {"create.topic.policy.class.name": "watched_policies:Watched", "my.key": "mine"}
    with in_process_broker(tmp_path, settings) as broker, no_bugs_logged():
        broker.create_topic("taken")
        topic = {"name": "refused", "num_partitions": 1, "replication_factor": 1}
        response = broker.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=1000), 5)
        (result,) = response.topics  # type: ignore[attr-defined]
        assert (result.error_code, result.error_message) == (ErrorCode.POLICY_VIOLATION, "no")
        assert Watched.calls == ["configured with mine", "taken", "refused"]
    assert Watched.calls[-1] == "closed"


def test_policies_and_the_authorizer_get_the_stored_dynamic_configs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("watched_policies")
    vars(module).update(Watched=Watched)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    classes = {"create.topic.policy.class.name": "watched_policies:Watched", "authorizer.class.name": ACL_AUTHORIZER}
    with in_process_broker(tmp_path) as broker:
        client = broker.services.controller.client
        broker.run(
            change_entity_config(client, "brokers/<default>", {"super.users": "User:ANONYMOUS", "my.key": "of all"})
        )
        broker.run(change_entity_config(client, f"brokers/{broker.services.broker_id}", {"my.key": "of one"}))
    Watched.calls.clear()
    with in_process_broker(tmp_path, classes) as broker:
        assert Watched.calls == ["configured with of one"]
        broker.create_topic("t")  # as a super user


def test_an_authorizer_that_cannot_be_closed_does_not_keep_the_broker_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close = AclAuthorizer.close

    def failing(authorizer: AclAuthorizer) -> None:
        close(authorizer)
        raise LookupError("it is gone")

    monkeypatch.setattr(AclAuthorizer, "close", failing)
    with in_process_broker(tmp_path, {"authorizer.class.name": ACL_AUTHORIZER}):
        pass
    assert "Cannot close the authorizer AclAuthorizer" in caplog.text
    assert list(tmp_path.rglob(".kafka_cleanshutdown"))


def change_configs(
    broker: InProcessBroker, resource: tuple[int, str], changes: list[tuple[str, int, str | None]]
) -> None:
    configs = [{"name": name, "config_operation": operation, "value": value} for name, operation, value in changes]
    asked = [{"resource_type": resource[0], "resource_name": resource[1], "configs": configs}]
    response = broker.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=asked), 1)
    assert [result.error_code for result in response.responses] == [0]  # type: ignore[attr-defined]
    key, _, value = changes[0]
    if value is not None:
        assert broker.settle(lambda: broker.services.log_manager.config_of("t").min_insync_replicas == int(value)), key
