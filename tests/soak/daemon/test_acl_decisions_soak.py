"""Decisions of `AclAuthorizer` equal those of a naive model in 100,000 random cases. ODRADEK_SOAK_CASES shortens it."""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from tests.support.acls.acl_model import compare_with_the_model

pytestmark = pytest.mark.soak

CASES = int(os.environ.get("ODRADEK_SOAK_CASES", "100000"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))


def test_decisions_are_those_of_a_naive_model() -> None:
    print(f"ODRADEK_SOAK_SEED={SEED}")
    assert asyncio.run(compare_with_the_model(random.Random(SEED), CASES)) == {False, True}
