from __future__ import annotations

import pytest

from odradek.broker.tools.admin.groups.group_listing import list_groups
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.support.clusters.admin_cluster import AdminCluster, outcome
from tests.support.clusters.admin_groups import AdminGroups


def test_an_error_of_a_broker_ends_the_listing(
    cluster: AdminCluster, groups: AdminGroups, capsys: pytest.CaptureFixture[str]
) -> None:
    loading = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    cluster.on(ListGroupsRequest, lambda broker_id, request: loading)
    assert outcome(list_groups, status=1) == []
    assert capsys.readouterr().err == "odradek: Groups of broker 1: The coordinator is not available.\n"
