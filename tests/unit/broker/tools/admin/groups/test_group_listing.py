from __future__ import annotations

import pytest

from odradek.broker.tools.admin.groups.group_listing import list_groups
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from tests.support.clusters.admin_cluster import AdminCluster, outcome
from tests.support.clusters.admin_groups import AdminGroups


def test_an_error_of_a_broker_ends_the_listing(
    cluster: AdminCluster, groups: AdminGroups, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = ListGroupsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    cluster.on(ListGroupsRequest, lambda broker_id, request: refused)
    assert outcome(list_groups, status=1) == []
    assert capsys.readouterr().err == "odradek: Groups of broker 1: Cluster authorization failed.\n"


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_is_loading_is_asked_again(code: ErrorCode, cluster: AdminCluster) -> None:
    errors = {2: [code], 3: [code, code]}

    def answer(broker_id: int, request: ListGroupsRequest) -> ListGroupsResponse:
        if errors.get(broker_id):
            return ListGroupsResponse(error_code=errors[broker_id].pop())
        group = ListedGroup(group_id=f"g{broker_id}", protocol_type="consumer")
        return ListGroupsResponse(groups=[group])

    cluster.on(ListGroupsRequest, answer)
    (found,) = outcome(list_groups)
    assert [group.group_id for group in found] == ["g1", "g2", "g3"]
    assert [broker_id for broker_id, _ in cluster.requests(ListGroupsRequest)] == [1, 2, 3, 2, 3, 3]
