"""Commands against a cluster in memory."""

from __future__ import annotations

import pytest

from tests.support.clusters.data_cluster import DataCluster
from tests.unit.broker.tools.data.commands import Commands


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Commands:
    cluster = DataCluster()
    cluster.create("t")
    return Commands(cluster, monkeypatch)
