"""The four APIs of delegation tokens on a whole broker."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.broker.apis.security.create_delegation_token import RENEWERS_LENGTH_MAX, RENEWERS_MAX
from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext, Authorizer
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import START_MS, FakeConnection, InProcessBroker, in_process_broker
from tests.support.wire.requests import build

SECRET = "secret-key"
DAY_MS = 86_400_000
NONE = ErrorCode.NONE
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path, {"delegation.token.secret.key": SECRET}) as one:
        yield one


def client(
    name: str = "alice", protocol: SecurityProtocol = SecurityProtocol.SASL_PLAINTEXT, *, by_token: bool = False
) -> FakeConnection:
    connection = FakeConnection()
    connection.principal = f"User:{name}"
    connection.security_protocol = protocol
    connection.is_token_authenticated = by_token
    return connection


def create(broker: InProcessBroker, connection: FakeConnection, version: int = 3, **fields: object) -> Any:
    request = {"renewers": [], "max_lifetime_ms": -1, **fields}
    return broker.call(build(ApiKey.CREATE_DELEGATION_TOKEN, **request), version, connection=connection)


def renew(broker: InProcessBroker, connection: FakeConnection, secret: bytes, period_ms: int = -1) -> tuple[int, int]:
    request = build(ApiKey.RENEW_DELEGATION_TOKEN, hmac=secret, renew_period_ms=period_ms)
    answer: Any = broker.call(request, 2, connection=connection)
    return answer.error_code, answer.expiry_timestamp_ms


def expire(broker: InProcessBroker, connection: FakeConnection, secret: bytes, period_ms: int = -1) -> tuple[int, int]:
    request = build(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=secret, expiry_time_period_ms=period_ms)
    answer: Any = broker.call(request, 2, connection=connection)
    return answer.error_code, answer.expiry_timestamp_ms


def describe(
    broker: InProcessBroker, connection: FakeConnection, owners: list[str] | None = None, version: int = 3
) -> Any:
    named = None if owners is None else [{"principal_type": "User", "principal_name": name} for name in owners]
    return broker.call(build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=named), version, connection=connection)


def user(name: str) -> dict[str, str]:
    return {"principal_type": "User", "principal_name": name}


# Create


def test_a_token_for_its_creator(broker: InProcessBroker) -> None:
    answer = create(broker, client(), renewers=[user("bob")])
    assert (answer.error_code, answer.principal_type, answer.principal_name) == (NONE, "User", "alice")
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == ("User", "alice")
    assert answer.issue_timestamp_ms == START_MS
    assert answer.expiry_timestamp_ms == START_MS + DAY_MS
    assert answer.max_timestamp_ms == START_MS + 7 * DAY_MS
    assert answer.hmac == hmac.digest(SECRET.encode(), answer.token_id.encode(), "sha512")
    node = broker.run(broker.services.controller.client.get(f"/delegation_token/tokens/{answer.token_id}"))
    assert node is not None
    assert json.loads(node.data or b"")["renewers"] == ["User%3Abob"]
    names = broker.run(broker.services.controller.client.children("/delegation_token/token_changes"))
    assert names == ("token_change_0000000000",)


@pytest.mark.parametrize(
    ("asked_ms", "lifetime_ms", "expiry_ms"),
    [
        (0, 7 * DAY_MS, DAY_MS),
        (1000, 1000, 1000),
        (2 * DAY_MS, 2 * DAY_MS, DAY_MS),
        (2**63 - 1, 7 * DAY_MS, DAY_MS),
    ],
)
def test_lifetimes(broker: InProcessBroker, asked_ms: int, lifetime_ms: int, expiry_ms: int) -> None:
    answer = create(broker, client(), max_lifetime_ms=asked_ms)
    assert answer.max_timestamp_ms == START_MS + lifetime_ms
    assert answer.expiry_timestamp_ms == START_MS + expiry_ms


@pytest.mark.parametrize(
    "connection",
    [
        client("ANONYMOUS", SecurityProtocol.PLAINTEXT),
        client("ANONYMOUS", SecurityProtocol.SSL),
        client("alice", SecurityProtocol.SASL_SSL, by_token=True),
    ],
)
def test_who_has_not_proved_a_name_gets_no_token(broker: InProcessBroker, connection: FakeConnection) -> None:
    name = connection.principal.partition(":")[2]
    answer = create(broker, connection, renewers=[{"principal_type": "Group", "principal_name": "g"}])
    assert (answer.error_code, answer.principal_name, answer.max_timestamp_ms) == (NOT_ALLOWED, name, -1)
    assert (answer.token_id, answer.hmac) == ("", b"")
    assert renew(broker, connection, b"x") == (NOT_ALLOWED, -1)
    assert expire(broker, connection, b"x") == (NOT_ALLOWED, -1)
    assert describe(broker, connection).error_code == NOT_ALLOWED


def test_a_client_certificate_proves_a_name(broker: InProcessBroker) -> None:
    assert create(broker, client("CN=a", SecurityProtocol.SSL)).error_code == NONE


def test_without_a_secret_key_there_are_no_tokens(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, {"delegation.token.secret.key": ""}) as broker:
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert create(broker, client()).error_code == disabled
        assert renew(broker, client(), b"x") == (disabled, -1)
        assert expire(broker, client(), b"x") == (disabled, -1)
        assert describe(broker, client(), []).error_code == disabled
        assert not broker.run(broker.services.controller.client.exists("/delegation_token"))


def test_the_former_name_of_the_secret_key(tmp_path: Path) -> None:
    with in_process_broker(tmp_path, {"delegation.token.master.key": SECRET}) as broker:
        answer = create(broker, client())
        assert answer.hmac == hmac.digest(SECRET.encode(), answer.token_id.encode(), "sha512")


def test_renewers_are_users(broker: InProcessBroker) -> None:
    answer = create(broker, client(), renewers=[user("bob"), {"principal_type": "Group", "principal_name": "g"}])
    assert (answer.error_code, answer.principal_name) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "alice")


@pytest.mark.parametrize(
    ("renewers", "error"),
    [
        ([user("r")] * RENEWERS_MAX, NONE),
        ([user("r")] * (RENEWERS_MAX + 1), ErrorCode.INVALID_REQUEST),
        ([user("r" * (RENEWERS_LENGTH_MAX // 4))] * 4, NONE),
        ([user("r" * (RENEWERS_LENGTH_MAX // 4))] * 4 + [user("r")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_token_fits_into_a_node(broker: InProcessBroker, renewers: list[dict[str, str]], error: ErrorCode) -> None:
    assert create(broker, client(), renewers=renewers).error_code == error


def test_an_owner_without_a_type_is_an_error_as_in_apache(broker: InProcessBroker) -> None:
    answer = create(broker, client(), owner_principal_type=None, owner_principal_name="bob")
    assert (answer.error_code, answer.principal_name) == (ErrorCode.UNKNOWN_SERVER_ERROR, "ANONYMOUS")


class Rights:
    """An authorizer that allows some (operation, resource name) and remembers what it was asked."""

    def __init__(self, *allowed: tuple[str, str]) -> None:
        self.allowed = allowed
        self.asked: list[tuple[str, str]] = []

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action], /) -> list[bool]:
        asked = [(action.operation.name, action.resource_name) for action in actions]
        self.asked += asked
        return [each in self.allowed for each in asked]


def authorize_with(broker: InProcessBroker, rights: Rights) -> None:
    rights_and_end = SimpleNamespace(authorize=rights.authorize, close=lambda: None)
    broker.services.authorizer = cast("Authorizer", rights_and_end)


def test_a_token_for_another_owner_needs_the_right_to_create_it(broker: InProcessBroker) -> None:
    rights = Rights(("CREATE_TOKENS", "User:bob"))
    authorize_with(broker, rights)
    bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    carol = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    answer = create(broker, client(), **bob)
    assert (answer.error_code, answer.principal_name, answer.token_requester_principal_name) == (NONE, "bob", "alice")
    answer = create(broker, client(), **carol)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (answer.principal_name, answer.token_requester_principal_name) == ("carol", "alice")
    rights.asked.clear()
    assert create(broker, client(), owner_principal_type="User", owner_principal_name="alice").error_code == NONE
    assert create(broker, client()).error_code == NONE
    assert rights.asked == []


# Renew and expire


def test_a_renewal_ends_with_the_lifetime(broker: InProcessBroker) -> None:
    secret = create(broker, client(), renewers=[user("bob")]).hmac
    broker.advance(1000)
    assert renew(broker, client("bob"), secret) == (NONE, START_MS + 1000 + DAY_MS)
    assert renew(broker, client(), secret, 5000) == (NONE, START_MS + 6000)
    assert renew(broker, client(), secret, 2**63 - 1) == (NONE, START_MS + 7 * DAY_MS)
    assert renew(broker, client("carol"), secret) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    other = secret[:-1] + bytes([secret[-1] ^ 1])
    assert renew(broker, client(), other) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)
    assert describe(broker, client()).tokens[0].expiry_timestamp == START_MS + 7 * DAY_MS


def test_an_expired_token_is_not_renewed_but_can_be_removed(broker: InProcessBroker) -> None:
    secret = create(broker, client(), max_lifetime_ms=1000).hmac
    broker.clock.advance(1000)  # type: ignore[union-attr]
    assert renew(broker, client(), secret)[0] == NONE
    broker.clock.advance(1)  # type: ignore[union-attr]
    assert renew(broker, client("carol"), secret) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    assert renew(broker, client(), secret) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, -1)
    assert expire(broker, client(), secret, 5) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, -1)
    assert expire(broker, client(), secret) == (NONE, START_MS + 1001)
    assert expire(broker, client(), secret) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)


def test_an_expiry_is_set(broker: InProcessBroker) -> None:
    secret = create(broker, client(), renewers=[user("bob")]).hmac
    assert expire(broker, client("carol"), secret) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    assert expire(broker, client("bob"), secret, 10) == (NONE, START_MS + 10)
    assert expire(broker, client(), secret, 2**63 - 1) == (NONE, START_MS + 7 * DAY_MS)
    assert expire(broker, client(), secret, 0) == (NONE, START_MS)


def test_the_controller_removes_expired_tokens(broker: InProcessBroker) -> None:
    short = create(broker, client(), max_lifetime_ms=1000)
    create(broker, client())
    broker.advance(3_600_000)
    tree = broker.services.controller.client
    path = f"/delegation_token/tokens/{short.token_id}"
    manager = broker.services.token_manager
    assert manager is not None
    assert broker.settle(lambda: manager.cache.token_info(short.token_id) is None)
    assert not broker.run(tree.exists(path))
    assert len(describe(broker, client()).tokens) == 1


# Describe


def test_who_sees_which_tokens(broker: InProcessBroker) -> None:
    authorize_with(broker, Rights(("CREATE_TOKENS", "User:bob")))
    mine = create(broker, client(), renewers=[user("dave")])
    for_bob = create(broker, client(), owner_principal_type="User", owner_principal_name="bob")
    carols = create(broker, client("carol"))

    def seen(name: str, owners: list[str] | None = None) -> set[str]:
        answer = describe(broker, client(name), owners)
        assert answer.error_code == NONE
        return {token.token_id for token in answer.tokens}

    assert seen("alice") == {mine.token_id, for_bob.token_id}
    assert seen("bob") == {for_bob.token_id}
    assert seen("dave") == {mine.token_id}
    assert seen("alice", ["bob"]) == {for_bob.token_id}
    assert seen("alice", []) == set()
    assert seen("alice", ["carol"]) == set()
    authorize_with(broker, Rights(("DESCRIBE", carols.token_id)))
    assert seen("alice", ["carol"]) == {carols.token_id}
    authorize_with(broker, Rights(("DESCRIBE_TOKENS", "User:carol")))
    assert seen("alice", ["carol", "bob"]) == {carols.token_id, for_bob.token_id}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_described_token(broker: InProcessBroker, version: int) -> None:
    created = create(broker, client(), 0, renewers=[user("bob")])
    (token,) = describe(broker, client(), ["alice"], version).tokens
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert token.token_requester_principal_name == ("alice" if version >= 3 else "")
    assert (token.token_id, token.hmac) == (created.token_id, created.hmac)
    assert [renewer.principal_name for renewer in token.renewers] == ["bob"]
    assert (token.issue_timestamp, token.expiry_timestamp) == (START_MS, START_MS + DAY_MS)
    assert token.max_timestamp == START_MS + 7 * DAY_MS


# The cache


def test_tokens_and_their_credentials_survive_a_restart(tmp_path: Path) -> None:
    settings = {"delegation.token.secret.key": SECRET}
    with in_process_broker(tmp_path, settings) as broker:
        created = create(broker, client())
    with in_process_broker(tmp_path, settings) as broker:
        manager = broker.services.token_manager
        assert manager is not None
        assert manager.cache.token_info(created.token_id) == ("User:alice", START_MS + DAY_MS)
        assert renew(broker, client(), created.hmac)[0] == NONE


def test_secrets_are_in_no_log_and_no_repr(broker: InProcessBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    created = create(broker, client())
    renew(broker, client(), created.hmac)
    manager = broker.services.token_manager
    assert manager is not None
    (token,) = manager.cache.tokens()
    shown = caplog.text + repr(token) + repr(manager._settings)
    assert created.token_id in shown
    for secret in (SECRET, repr(created.hmac)[2:-1], created.hmac.hex(), hashlib.sha512(created.hmac).hexdigest()):
        assert secret not in shown
