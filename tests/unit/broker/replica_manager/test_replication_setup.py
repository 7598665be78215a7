"""Settings of the configuration reach the replica manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.inter_broker.ports import BrokerLink
from odradek.broker.partition.in_sync_replicas import InSyncReplicas
from odradek.broker.replica_manager.replication_setup import make_replica_manager
from odradek.broker.replication.replica_fetchers import ReplicaFetcherManager
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.replication.replicas import TP, Replicas


def no_link(end_point: EndPoint, /, *, client_id: str) -> BrokerLink:
    raise AssertionError("nobody is followed")


def test_lag_that_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = Replicas(tmp_path)
    manager = make_replica_manager(
        BrokerConfig({"replica.lag.time.max.ms": "2000", "log.dirs": str(tmp_path)}),
        around.log_manager,
        around.cache,
        around.disk.clock,
        around.disk.timer,
        broker_id=7,
        alter_partition=around,
        make_link=no_link,
        broker_epoch=lambda: 0,
    )
    looked: list[object] = []
    monkeypatch.setattr(InSyncReplicas, "maybe_shrink_isr", lambda in_sync: looked.append(in_sync))
    manager.startup()
    manager.partitions.create(TopicPartition("t", 0))
    around.advance(999)
    assert looked == []
    around.advance(1)
    assert len(looked) == 1
    assert manager.broker_id == 7


def test_fetchers(tmp_path: Path) -> None:
    config = BrokerConfig(
        {
            "num.replica.fetchers": "3",
            "replica.fetch.wait.max.ms": "11",
            "replica.fetch.min.bytes": "12",
            "replica.fetch.max.bytes": "13",
            "replica.fetch.response.max.bytes": "14",
            "replica.fetch.backoff.ms": "15",
            "replica.socket.timeout.ms": "16",
            "replication.quota.window.num": "2",
        }
    )
    config.apply_dynamic(broker={"follower.replication.throttled.rate": "10"}, default={})
    around = Replicas(tmp_path)
    around.know(TP, replicas=[5])
    manager = make_replica_manager(
        config,
        around.log_manager,
        around.cache,
        around.disk.clock,
        around.disk.timer,
        broker_id=4,
        alter_partition=around,
        make_link=no_link,
        broker_epoch=lambda: 99,
    )
    assert isinstance(manager.fetchers, ReplicaFetcherManager)
    settings = manager.fetchers._settings
    assert settings.count() == 3
    assert settings.end_point(5) == EndPoint("h5", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
    assert settings.end_point(6) is None
    leader, fetcher = settings.leader, settings.fetcher
    assert (leader.broker_id, leader.broker_epoch(), fetcher.broker_id) == (4, 99, 4)
    assert (leader.wait_max_ms, leader.min_bytes, leader.max_bytes, leader.response_max_bytes) == (11, 12, 13, 14)
    assert (fetcher.backoff_ms, leader.socket_timeout_ms) == (15, 16)
    fetcher.quota.record(10)
    assert not fetcher.quota.is_exceeded
    fetcher.quota.record(1)
    assert fetcher.quota.is_exceeded
