from __future__ import annotations

import pytest

from odradek.controller.model.delegation_token import Principal, TokenInformation

ALICE, BOB, CAROL, DAVE = (Principal("User", name) for name in ("alice", "bob", "carol", "dave"))
TOKEN = TokenInformation("id", ALICE, BOB, (CAROL,), issue_ms=10, max_ms=30, expiry_ms=20)


def test_a_principal_keeps_the_colons_of_its_name() -> None:
    assert Principal.of_text("User:a:b") == Principal("User", "a:b")
    assert str(Principal("User", "a:b")) == "User:a:b"
    with pytest.raises(ValueError, match="expected a string in format principalType:principalName but got alice"):
        Principal.of_text("alice")


def test_a_requester_may_describe_the_token_but_not_renew_it() -> None:
    assert [TOKEN.is_owner_or_renewer(principal) for principal in (ALICE, BOB, CAROL, DAVE)] == [
        True,
        True,
        True,
        False,
    ]
    assert [TOKEN.may_renew(principal) for principal in (ALICE, BOB, CAROL, DAVE)] == [True, False, True, False]


def test_a_token_is_valid_in_its_last_millisecond() -> None:
    assert not TOKEN.is_expired(20)
    assert TOKEN.is_expired(21)
    assert TOKEN._replace(expiry_ms=40).is_expired(31)
