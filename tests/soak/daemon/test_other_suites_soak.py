"""kafka-python's own integration tests against Odradek: the suite of another project whose sources pip can fetch."""

from __future__ import annotations

import pytest

from tests.support.strangers.runs import run_suite
from tests.support.strangers.suites import SUITES

PASSED_AT_LEAST = 51


@pytest.mark.soak
def test_kafka_pythons_tests_pass() -> None:
    outcome = run_suite(SUITES["kafka-python"], "odradek")
    assert not outcome.failed
    assert len(outcome.by_kind["passed"]) >= PASSED_AT_LEAST
