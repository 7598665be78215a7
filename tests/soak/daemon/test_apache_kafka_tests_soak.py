"""All of Apache Kafka's own integration tests that apply, with Odradek as the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.apache_tests.listing import TestClass, read_listing
from tests.support.apache_tests.runs import check, run_class

CLASSES = list(read_listing().classes.values())


@pytest.mark.soak
@pytest.mark.parametrize("entry", CLASSES, ids=lambda entry: entry.name)
def test_a_class_of_apaches_tests_passes(entry: TestClass, tmp_path: Path) -> None:
    check(entry, run_class(entry, tmp_path))
