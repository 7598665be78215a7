"""Perf commands against a cluster in memory."""

from __future__ import annotations

import pytest

from tests.support.clusters.data_cluster import DataCluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> DataCluster:
    cluster = DataCluster()
    cluster.create("t")
    monkeypatch.setattr("odradek.broker.tools.data.client.running.SocketLink", cluster.make_link)
    monkeypatch.setattr("odradek.broker.tools.command.client_config.RETRY_BACKOFF_MS", 1)
    return cluster
