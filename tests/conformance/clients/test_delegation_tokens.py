"""Delegation tokens with Apache's tool, Java clients and raw requests: the same on both kinds of brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from tests.support.broker import Broker
from tests.support.processes.apache.tools import Tools
from tests.support.processes.commands import run_command
from tests.support.processes.ports import free_port
from tests.support.tokens import (
    HOST,
    PLAIN_MODULE,
    SCRAM_MODULE,
    create_token,
    describe_tokens,
    expire_token,
    plain_client,
    renew_token,
    settings_with_tokens,
    token_log_in,
)
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.oracle

DAY_MS = 86_400_000
NONE = ErrorCode.NONE


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(
    make_broker: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, sasl_port: int
) -> Iterator[Broker]:
    plaintext = free_port()
    process = make_broker(tmp_path_factory.mktemp("tokens") / "broker", settings_with_tokens(plaintext, sasl_port))
    process.port = plaintext
    process.start()
    yield process
    process.close()


def test_the_life_of_a_token(broker: Broker, sasl_port: int) -> None:
    with plain_client(sasl_port, "alice") as alice, plain_client(sasl_port, "bob") as bob:
        renewer = {"principal_type": "User", "principal_name": "bob"}
        created = create_token(alice, renewers=[renewer], max_lifetime_ms=3 * DAY_MS)
        assert (created.error_code, created.principal_name, created.token_requester_principal_name) == (
            NONE,
            "alice",
            "alice",
        )
        issued = created.issue_timestamp_ms
        assert (created.expiry_timestamp_ms - issued, created.max_timestamp_ms - issued) == (DAY_MS, 3 * DAY_MS)
        assert renew_token(bob, created.hmac, 30 * DAY_MS).expiry_timestamp_ms == created.max_timestamp_ms
        (described,) = describe_tokens(alice, ["alice"]).tokens
        assert (described.token_id, described.hmac) == (created.token_id, created.hmac)
        assert described.expiry_timestamp == created.max_timestamp_ms
        assert describe_tokens(alice, []).tokens == []
        with plain_client(sasl_port, "carol") as carol:
            for change in (renew_token, expire_token):
                answer = change(carol, created.hmac)
                assert (answer.error_code, answer.expiry_timestamp_ms) == (
                    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
                    -1,
                )
        assert expire_token(bob, created.hmac, 60_000).error_code == NONE
        assert expire_token(alice, created.hmac).error_code == NONE
        for change in (renew_token, expire_token):
            assert change(alice, created.hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_requests_that_are_refused(broker: Broker, sasl_port: int, version: int) -> None:
    group = {"principal_type": "Group", "principal_name": "g"}
    with RawClient(broker.host, broker.port) as client:
        answer = create_token(client, version)
        assert (answer.error_code, answer.principal_name) == (
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "ANONYMOUS",
        )
        assert describe_tokens(client).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert renew_token(client, b"x").error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert expire_token(client, b"x").error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with plain_client(sasl_port, "alice") as client:
        answer = create_token(client, version, renewers=[group])
        assert (answer.error_code, answer.principal_name, answer.issue_timestamp_ms) == (
            ErrorCode.INVALID_PRINCIPAL_TYPE,
            "alice",
            -1,
        )
        if version >= 3:
            answer = create_token(client, version, owner_principal_type=None, owner_principal_name="bob")
            assert (answer.error_code, answer.principal_name) == (ErrorCode.UNKNOWN_SERVER_ERROR, "ANONYMOUS")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_with_a_token_is_its_owner_and_gets_no_more_tokens(
    broker: Broker, sasl_port: int, mechanism: str
) -> None:
    with plain_client(sasl_port, "alice") as alice:
        created = create_token(alice, owner_principal_type="User", owner_principal_name="bob")
        assert (created.error_code, created.principal_name) == (NONE, "bob")
        with RawClient(HOST, sasl_port) as client:
            answer = token_log_in(client, created.token_id, created.hmac, mechanism)
            assert answer.error_code == NONE
            assert 0 < answer.session_lifetime_ms <= DAY_MS
            refused = create_token(client)
            assert (refused.error_code, refused.principal_name) == (
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
                "bob",
            )
        with RawClient(HOST, sasl_port) as client:
            refused = token_log_in(client, created.token_id, created.hmac[:-1], mechanism)
            assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        with plain_client(sasl_port, "bob") as bob:
            expire_token(bob, created.hmac)
    with RawClient(HOST, sasl_port) as client:
        refused = token_log_in(client, created.token_id, created.hmac, mechanism)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def file_of_carol(directory: Path) -> Path:
    """What a tool takes to log in as carol."""
    path = directory / "carol.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="carol" password="carol-secret";\n'
    )
    return path


def test_the_tool_and_a_java_client_with_a_token(broker: Broker, sasl_port: int, tools: Tools, tmp_path: Path) -> None:
    bootstrap, carol = f"{HOST}:{sasl_port}", file_of_carol(tmp_path)

    def run(*arguments: str) -> list[str]:
        connection = ("--bootstrap-server", bootstrap, "--command-config", str(carol))
        return tools.run("delegation-tokens", *connection, *arguments).lines

    created = run("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:alice")
    token_id, hmac, owner, by, renewers = created[-1].split()[:5]
    assert (owner, by, renewers) == ("User:carol", "User:carol", "[User:alice]")
    described = run("--describe", "--owner-principal", "User:carol")
    assert described[-1].split()[:2] == [token_id, hmac]
    with_token = tmp_path / "token.properties"
    with_token.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={SCRAM_MODULE} required username="{token_id}" password="{hmac}" tokenauth="true";\n'
    )
    tools.run("topics", "--bootstrap-server", bootstrap, "--command-config", str(with_token), "--list")
    renewed = run("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert renewed[-1].startswith("Completed renew operation. New expiry date")
    expired = run("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert expired[-1].startswith("Completed expire operation. New expiry date")
    if broker.target == "odradek":
        assert hmac not in broker.log_text()


def test_the_command_tokens_prints_what_the_tool_prints(
    broker: Broker, sasl_port: int, tools: Tools, tmp_path: Path
) -> None:
    bootstrap, carol = f"{HOST}:{sasl_port}", file_of_carol(tmp_path)

    def run(*arguments: str) -> list[str]:
        return run_command(bootstrap, "tokens", "--command-config", str(carol), *arguments).stdout.decode().splitlines()

    created = run("--create", "--renewer-principal", "User:alice")
    hmac = created[-1].split()[1]
    connection = ("--bootstrap-server", bootstrap, "--command-config", str(carol))
    described = tools.run("delegation-tokens", *connection, "--describe", "--owner-principal", "User:carol").lines
    assert run("--describe", "--owner-principal", "User:carol") == described[1:]
    assert created[-2:] == described[-2:]
    for operation in ("renew", "expire"):
        assert run(f"--{operation}", "--hmac", hmac)[-1].startswith(f"Completed {operation} operation.")
    assert run("--describe", "--owner-principal", "User:carol")[0] == "Total number of tokens : 0"


def test_tokens_are_there_after_a_restart(broker: Broker, sasl_port: int) -> None:
    with plain_client(sasl_port, "alice") as alice:
        created = create_token(alice)
    broker.stop()
    broker.start()
    with RawClient(HOST, sasl_port) as client:
        assert token_log_in(client, created.token_id, created.hmac).error_code == NONE
