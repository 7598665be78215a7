from __future__ import annotations

import pytest

from tests.support.clusters.admin_cluster import AdminCluster, topic


@pytest.fixture
def some_topics(cluster: AdminCluster) -> None:
    cluster.has(topic("b", [1, 2], [2, 3]), topic("a", [3]), topic("__consumer_offsets", [1], is_internal=True))
