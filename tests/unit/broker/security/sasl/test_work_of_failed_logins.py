"""What a login that fails makes the broker do is the same whether its user exists: each call of a function, in order.

The times are compared in `tests/conformance/security/sasl/test_login_times.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.security.sasl import plain, scram
from odradek.broker.security.sasl.credential_cache import ScramCredentialCache
from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslError, SaslServer
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.broker.security.tokens.token_cache import DelegationToken, DelegationTokenCache
from odradek.controller.model.delegation_token import Principal, TokenInformation
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from tests.support.garbage import no_collection
from tests.support.in_process.security.sasl_contexts import context

KNOWN, UNKNOWN = "alice", "nobby"
"""Of one length."""
PLAIN_JAAS = f'{plain.LOGIN_MODULE} required user_{KNOWN}="secret";'
SCRAM_JAAS = f"{scram.LOGIN_MODULE} required;"
SALT = b"a" * 26


def calls_of(work: Callable[[], object]) -> list[str]:
    """The functions that it calls, also those in C."""
    found: list[str] = []

    def note(frame: Any, event: str, function: Any) -> None:
        if event == "call":
            found.append(frame.f_code.co_qualname)
        elif event == "c_call":
            found.append(function.__qualname__)

    with no_collection():
        sys.setprofile(note)
        try:
            work()
        finally:
            sys.setprofile(None)
    return found


def refused(server: SaslServer, message: bytes) -> list[str]:
    def attempt() -> None:
        try:
            server.evaluate_response(message)
        except (SaslError, SaslAuthenticationError):
            return
        raise AssertionError("the login is not refused")

    return calls_of(attempt)


def test_plain() -> None:
    known, unknown = (
        refused(plain.load_server(context("PLAIN", PLAIN_JAAS))(), f"\0{user}\0wrong".encode())
        for user in (KNOWN, UNKNOWN)
    )
    assert known == unknown
    assert known.count("openssl_sha256") == 2


def scram_server(mechanism_name: str) -> SaslServer:
    """It knows one user, and one token of the same name."""
    mechanism = SCRAM_MECHANISMS[mechanism_name]
    credential = mechanism.credential(SALT, mechanism.salted_password(b"secret", SALT, 4096), 4096)
    users, tokens = ScramCredentialCache(), DelegationTokenCache()
    users.config_changed(KNOWN, {mechanism_name: credential.to_text()})
    owner = Principal("User", "owner")
    info = TokenInformation(KNOWN, owner, owner, (), issue_ms=1, max_ms=3, expiry_ms=2)
    tokens.update(DelegationToken(info, b"hmac", {mechanism_name: credential}))
    return scram.load_server(context(mechanism_name, SCRAM_JAAS, users, tokens))()


def scram_work(mechanism_name: str, user: str, *, uses_token: bool) -> list[str]:
    client = ScramSaslClient(SCRAM_MECHANISMS[mechanism_name], user, "wrong", "nonce", uses_token=uses_token)
    server = scram_server(mechanism_name)
    first = client.evaluate_challenge(b"")
    assert first is not None
    challenges: list[bytes] = []
    work = calls_of(lambda: challenges.append(server.evaluate_response(first)))  # type: ignore[arg-type]
    final = client.evaluate_challenge(challenges[0])
    assert final is not None
    return work + refused(server, final)


@pytest.mark.parametrize("uses_token", [False, True], ids=["password", "token"])
@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_scram(mechanism: str, uses_token: bool) -> None:
    scram_work(mechanism, KNOWN, uses_token=uses_token)  # imports
    known, unknown = (scram_work(mechanism, user, uses_token=uses_token) for user in (KNOWN, UNKNOWN))
    assert known == unknown
    assert sum("hmac" in name for name in known) >= 3
