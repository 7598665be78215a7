from __future__ import annotations

import hashlib

import pytest

from odradek.broker.tools.admin.security.scram_requests import alter_user, describe_users
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.support.clusters.admin_cluster import AdminCluster, outcome
from tests.support.clusters.admin_quotas import AdminQuotas


def test_iterations_or_errors_of_users(quotas: AdminQuotas) -> None:
    quotas.has_user("a")
    quotas.has_user("b", mechanism=9)
    quotas.has_user("c", error=ErrorCode.RESOURCE_NOT_FOUND)
    assert outcome(lambda client: describe_users(client, [])) == [
        [("a", {"SCRAM-SHA-256": 8192}), ("b", {"UNKNOWN": 8192})]
    ]
    assert outcome(lambda client: describe_users(client, ["a"])) == [[("a", {"SCRAM-SHA-256": 8192})]]


def test_only_the_salted_password_is_sent(quotas: AdminQuotas, cluster: AdminCluster) -> None:
    credentials = {"SCRAM-SHA-256": "iterations=8192,password=a,b=c", "SCRAM-SHA-512": "password="}
    outcome(lambda client: alter_user(client, "u", credentials, []))
    ((_, request),) = cluster.requests(AlterUserScramCredentialsRequest)
    first, second = request.upsertions
    assert (first.name, first.iterations) == ("u", 8192)
    assert first.salted_password == hashlib.pbkdf2_hmac("sha256", b"a,b=c", first.salt, 8192)
    assert second.salted_password == hashlib.pbkdf2_hmac("sha512", b"", second.salt, 4096)
    assert first.salt != second.salt


@pytest.mark.parametrize(
    "text", ["secret", "iterations=4095,password=p", "iterations=16385,password=p", "iterations=,password=p"]
)
def test_credentials_that_are_not_valid_are_refused(
    text: str, quotas: AdminQuotas, cluster: AdminCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(lambda client: alter_user(client, "u", {"SCRAM-SHA-256": text}, []), status=1) == []
    assert cluster.requests(AlterUserScramCredentialsRequest) == []
    assert "secret" not in capsys.readouterr().err


def test_a_refused_change_is_an_error(quotas: AdminQuotas) -> None:
    quotas.error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert outcome(lambda client: alter_user(client, "u", {}, ["SCRAM-SHA-256"]), status=1) == []
