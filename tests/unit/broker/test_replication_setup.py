"""What is configured reaches the replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.in_sync_replicas import InSyncReplicas
from odradek.broker.replication_setup import make_replica_manager
from odradek.protocol.topic_partition import TopicPartition
from tests.support.replicas import Replicas


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
    )
    looked: list[object] = []
    monkeypatch.setattr(InSyncReplicas, "maybe_shrink", lambda in_sync: looked.append(in_sync))
    manager.startup()
    manager.create(TopicPartition("t", 0))
    around.advance(999)
    assert looked == []
    around.advance(1)
    assert len(looked) == 1
    assert manager.broker_id == 7
