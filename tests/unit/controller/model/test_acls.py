"""Codes of ACLs that the protocol may bring."""

from __future__ import annotations

import pytest

from odradek.controller.model.acls import AclOperation, AclPermissionType, PatternType, ResourceType


@pytest.mark.parametrize(
    ("codes", "highest"), [(ResourceType, 7), (PatternType, 4), (AclOperation, 14), (AclPermissionType, 3)]
)
def test_codes_that_do_not_exist_are_unknown(codes: type[ResourceType], highest: int) -> None:
    assert [codes(code) for code in range(highest + 1)] == list(codes)
    assert [codes(code).name for code in (-1, highest + 1, 127)] == ["UNKNOWN"] * 3


def test_only_stored_patterns_are_specific() -> None:
    assert [kind for kind in PatternType if kind.is_specific] == [PatternType.LITERAL, PatternType.PREFIXED]
