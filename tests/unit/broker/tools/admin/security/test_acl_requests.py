from __future__ import annotations

import pytest

from odradek.broker.tools.admin.security.acl_requests import create_acls, delete_acls, describe_acls
from odradek.protocol.errors import ErrorCode
from tests.support.acls.authorizers import ALL, binding, filter_of
from tests.support.clusters.admin_acls import AdminAcls
from tests.support.clusters.admin_cluster import outcome


def test_bindings_there_and_back(acls: AdminAcls) -> None:
    new = [binding(), binding("u")]
    assert outcome(lambda client: create_acls(client, new)) == [None]
    assert acls.bindings == set(new)
    ((*found,),) = outcome(lambda client: describe_acls(client, ALL))  # type: ignore[misc]
    assert sorted(found) == sorted(new)
    assert outcome(lambda client: delete_acls(client, [filter_of("u"), filter_of("none")])) == [1]
    assert acls.bindings == {new[0]}


def test_what_a_broker_refuses_is_an_error(acls: AdminAcls, capsys: pytest.CaptureFixture[str]) -> None:
    acls.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for work, text in (
        (lambda client: create_acls(client, [binding()]), "Creating (principal=User:a, host=*, operation=READ, "),
        (lambda client: describe_acls(client, ALL), "Describing ACLs: "),
        (lambda client: delete_acls(client, [ALL]), "Deleting ACLs: "),
    ):
        assert outcome(work, status=1) == []
        assert capsys.readouterr().err.startswith(f"odradek: {text}")
