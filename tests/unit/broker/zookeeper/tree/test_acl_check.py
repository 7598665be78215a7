from __future__ import annotations

import pytest

from odradek.broker.zookeeper.codes import Code, Permission, Refused
from odradek.broker.zookeeper.jute import Acl, Identity
from odradek.broker.zookeeper.tree.acl_check import (
    ACLS_MAX,
    ANYONE,
    OPEN,
    check_acl,
    digest,
    fixed_acls,
    is_allowed,
    proved_identity,
    user_name,
    without_hashes,
)

ALICE = Identity("digest", digest("alice:secret"))
HERE = Identity("ip", "10.1.2.3")


def test_a_right_needs_the_permission_and_the_identity() -> None:
    acls = (Acl(Permission.READ, ANYONE), Acl(31, ALICE))
    assert is_allowed(acls, Permission.READ, [HERE])
    assert not is_allowed(acls, Permission.WRITE, [HERE])
    assert is_allowed(acls, Permission.WRITE, [HERE, ALICE])
    assert is_allowed((), Permission.WRITE, [])
    with pytest.raises(Refused) as refused:
        check_acl(acls, Permission.ADMIN, [HERE])
    assert refused.value.code is Code.NO_AUTH


@pytest.mark.parametrize(
    ("network", "is_in"),
    [
        ("10.1.2.3", True),
        ("10.1.2.4", False),
        ("10.0.0.0/8", True),
        ("10.1.3.0/24", False),
        ("0.0.0.0/0", True),
        ("x", False),
    ],
)
def test_networks(network: str, is_in: bool) -> None:
    assert is_allowed((Acl(31, Identity("ip", network)),), Permission.READ, [HERE]) is is_in


@pytest.mark.parametrize(
    ("scheme", "name", "is_valid"),
    [
        ("world", "anyone", True),
        ("world", "other", False),
        ("digest", "a:b", True),
        ("digest", "a", False),
        ("digest", "a:b:c", False),
        ("digest", "a:", False),
        ("ip", "1.2.3.4/32", True),
        ("ip", "1.2.3.4/33", False),
        ("ip", "1.2.3", False),
        ("ip", "1.2.3.256", False),
        ("x509", "CN=a", False),
        ("sasl", "a", False),
        ("auth", "", False),
        (None, None, False),
    ],
)
def test_acls_that_a_node_may_get(scheme: str | None, name: str | None, is_valid: bool) -> None:
    acl = Acl(31, Identity(scheme, name))
    if is_valid:
        assert fixed_acls([acl, acl], [HERE]) == [acl]
    else:
        with pytest.raises(Refused) as refused:
            fixed_acls([acl], [HERE])
        assert refused.value.code is Code.INVALID_ACL


@pytest.mark.parametrize("acls", [None, []])
def test_no_acl_is_invalid(acls: list[Acl] | None) -> None:
    with pytest.raises(Refused):
        fixed_acls(acls, [ALICE])


def test_auth_stands_for_what_the_client_has_proved() -> None:
    assert fixed_acls([Acl(5, Identity("auth", "whatever"))], [HERE, ALICE]) == [Acl(5, ALICE)]


def test_authentication() -> None:
    assert proved_identity("digest", b"alice:secret", "::1") == ALICE
    assert proved_identity("ip", b"", "1.2.3.4") == Identity("ip", "1.2.3.4")
    assert proved_identity("x509", b"", "1.2.3.4") is None
    assert proved_identity("digest", None, "1.2.3.4") is None
    assert digest("super:test") == "super:D/InIHSb7yEEbrWz8b9l71RjZJU="


def test_hashes_are_shown_to_administrators_only() -> None:
    (shown,) = without_hashes([Acl(31, ALICE)])
    assert shown.identity.id == "alice:x"
    assert without_hashes(OPEN) == list(OPEN)
    assert user_name(ALICE) == "alice"
    assert user_name(HERE) == "10.1.2.3"


def test_what_a_client_has_proved_makes_no_endless_acl() -> None:
    proved = [Identity("digest", digest(f"user-{number}:x")) for number in range(10)]
    most = [Acl(permissions, Identity("auth", "")) for permissions in range(ACLS_MAX // 10)]
    assert len(fixed_acls(most, proved)) == ACLS_MAX
    with pytest.raises(Refused) as refused:
        fixed_acls([*most, Acl(-1, Identity("auth", ""))], proved)
    assert refused.value.code == Code.INVALID_ACL
