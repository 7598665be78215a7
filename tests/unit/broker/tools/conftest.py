"""Commands for a running cluster, run against a fake one."""

from __future__ import annotations

import pytest

from tests.support.clusters.admin_acls import AdminAcls
from tests.support.clusters.admin_cluster import AdminCluster, Command
from tests.support.clusters.admin_groups import AdminGroups
from tests.support.clusters.admin_quotas import AdminQuotas
from tests.support.clusters.admin_transactions import AdminTransactions


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> AdminCluster:
    cluster = AdminCluster()
    monkeypatch.setattr("odradek.broker.tools.admin.client.admin_client.SocketLink", cluster.make_link)
    monkeypatch.setattr("odradek.broker.tools.command.client_config.RETRY_BACKOFF_MS", 1)
    return cluster


@pytest.fixture
def groups(cluster: AdminCluster) -> AdminGroups:
    return AdminGroups(cluster)


@pytest.fixture
def transactions(cluster: AdminCluster) -> AdminTransactions:
    return AdminTransactions(cluster)


@pytest.fixture
def quotas(cluster: AdminCluster) -> AdminQuotas:
    return AdminQuotas(cluster)


@pytest.fixture
def acls(cluster: AdminCluster) -> AdminAcls:
    return AdminAcls(cluster)


@pytest.fixture
def command(cluster: AdminCluster, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(cluster, capsys)
