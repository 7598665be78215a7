"""A cluster whose answers the test sets, in place of sockets."""

from __future__ import annotations

import pytest

from tests.support.clusters.admin_cluster import AdminCluster
from tests.support.clusters.admin_groups import AdminGroups


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> AdminCluster:
    cluster = AdminCluster()
    monkeypatch.setattr("odradek.broker.tools.admin.client.admin_client.SocketLink", cluster.make_link)
    AdminGroups(cluster)  # answers ListOffsets, too
    return cluster
