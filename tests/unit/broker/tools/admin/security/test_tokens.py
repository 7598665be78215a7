from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.security.tokens import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from tests.support.clusters.admin_cluster import AdminCluster, Command

HOUR_MS = 3_600_000


def test_a_token_is_created(cluster: AdminCluster, command: Command) -> None:
    def create(_: int, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
        assert (request.owner_principal_type, request.owner_principal_name) == ("User", "bob")
        assert [(one.principal_type, one.principal_name) for one in request.renewers] == [("User", "carol")]
        assert request.max_lifetime_ms == 5
        return CreateDelegationTokenResponse(
            error_code=0,
            principal_type="User",
            principal_name="bob",
            token_requester_principal_type="User",
            token_requester_principal_name="alice",
            issue_timestamp_ms=HOUR_MS,
            expiry_timestamp_ms=2 * HOUR_MS,
            max_timestamp_ms=3 * HOUR_MS,
            token_id="id",
            hmac=b"secret",
        )

    cluster.on(CreateDelegationTokenRequest, create)
    arguments = ("--create", "--owner-principal", "User:bob", "--renewer-principal", "User:carol")
    status, lines, _ = command(main, *arguments, "--max-life-time-period", "5")
    assert status == 0
    assert lines[0] == "Created delegation token with tokenId : id"
    assert lines[1].split()[:3] == ["TOKENID", "HMAC", "OWNER"]
    assert lines[2].split()[:5] == ["id", "c2VjcmV0", "User:bob", "User:alice", "[User:carol]"]


@pytest.mark.parametrize(("owners", "asked"), [((), None), (("--owner-principal", "User:bob"), ["bob"])])
def test_tokens_are_described(
    cluster: AdminCluster, command: Command, owners: tuple[str, ...], asked: list[str] | None
) -> None:
    def describe(_: int, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
        assert (None if request.owners is None else [owner.principal_name for owner in request.owners]) == asked
        token = DescribedDelegationToken(
            principal_type="User",
            principal_name="bob",
            token_requester_principal_type="User",
            token_requester_principal_name="bob",
            token_id="id",
            hmac=b"secret",
            renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name="carol")],
        )
        return DescribeDelegationTokenResponse(tokens=[token])

    cluster.on(DescribeDelegationTokenRequest, describe)
    status, lines, _ = command(main, "--describe", *owners)
    assert (status, lines[0]) == (0, "Total number of tokens : 1")
    (row,) = json.loads("".join(command(main, "--describe", *owners, "--json")[1]))
    assert (row["token_id"], row["hmac"], row["renewers"]) == ("id", "c2VjcmV0", ["User:carol"])


def test_a_token_is_renewed_and_expired(cluster: AdminCluster, command: Command) -> None:
    def renew(_: int, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
        assert (bytes(request.hmac), request.renew_period_ms) == (b"secret", -1)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=HOUR_MS)

    def expire(_: int, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
        assert (bytes(request.hmac), request.expiry_time_period_ms) == (b"secret", 7)
        return ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    cluster.on(RenewDelegationTokenRequest, renew)
    cluster.on(ExpireDelegationTokenRequest, expire)
    status, lines, _ = command(main, "--renew", "--hmac", "c2VjcmV0")
    assert status == 0
    assert lines[0].startswith("Completed renew operation. New expiry date : 1970-01-01T")
    status, _, error = command(main, "--expire", "--hmac", "c2VjcmV0", "--expiry-time-period", "7")
    assert status == 1
    assert "the token was not expired" in error


@pytest.mark.parametrize(
    "arguments", [(), ("--renew",), ("--expire", "--hmac", "?"), ("--create", "--owner-principal", "x")]
)
def test_options_that_are_missing_or_invalid(command: Command, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        command(main, *arguments)
