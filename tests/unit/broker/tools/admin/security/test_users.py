from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pytest

from odradek.broker.tools.admin.security.users import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.support.clusters.admin_cluster import AdminCluster, Command
from tests.support.clusters.admin_quotas import AdminQuotas


def test_users_are_listed_by_mechanism(command: Command, quotas: AdminQuotas) -> None:
    quotas.has_user("a")
    quotas.has_user("broken", error=ErrorCode.UNKNOWN_SERVER_ERROR)
    status, lines, errors = command(main, "--list", "--json")
    assert status == 0
    assert json.loads("".join(lines)) == [{"user": "a", "mechanism": "SCRAM-SHA-256", "iterations": 8192}]
    assert "broken" in "".join(errors)


@pytest.mark.parametrize("is_file", [True, False])
def test_a_user_is_created_with_the_first_line_as_its_password(
    is_file: bool,
    command: Command,
    quotas: AdminQuotas,
    cluster: AdminCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "password"
    path.write_text("canary, =1\nnot this\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("" if is_file else path.read_text()))
    options = ("--password-file", str(path)) if is_file else ()
    status, lines, _ = command(main, "--create", "alice", *options)
    assert status == 0
    assert lines == ["Created user alice (SCRAM-SHA-512)."]
    ((_, request),) = cluster.requests(AlterUserScramCredentialsRequest)
    [new] = request.upsertions
    assert (new.name, new.mechanism, new.iterations) == ("alice", 2, 4096)
    assert new.salted_password == hashlib.pbkdf2_hmac("sha512", b"canary, =1", new.salt, 4096)


def test_an_empty_password_and_a_missing_file_are_refused(
    command: Command, cluster: AdminCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert command(main, "--create", "alice")[0] == 1
    assert command(main, "--create", "alice", "--password-file", "/no/such/file")[0] == 1
    assert cluster.requests(AlterUserScramCredentialsRequest) == []


def test_all_credentials_of_a_user_are_deleted_or_one(
    command: Command, quotas: AdminQuotas, cluster: AdminCluster
) -> None:
    quotas.has_user("a")
    assert command(main, "--delete", "a")[1] == ["Deleted user a (SCRAM-SHA-256)."]
    assert command(main, "--delete", "a", "--mechanism", "SCRAM-SHA-512")[1] == ["Deleted user a (SCRAM-SHA-512)."]
    requests = [request for _, request in cluster.requests(AlterUserScramCredentialsRequest)]
    assert [[gone.mechanism for gone in request.deletions] for request in requests] == [[1], [2]]
    assert command(main, "--delete", "nobody")[0] == 1


@pytest.mark.parametrize("arguments", [("--create",), ("--delete",), ("--list", "alice"), ("alice",)])
def test_arguments_that_do_not_fit(arguments: tuple[str, ...], command: Command) -> None:
    with pytest.raises(SystemExit):
        command(main, *arguments)
