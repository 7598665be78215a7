"""Apache Kafka's own tests of Kerberos with Odradek as the broker; each class has a KDC in its JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.apache_tests.listing import TestClass, read_listing
from tests.support.apache_tests.runs import check, run_class

pytestmark = [pytest.mark.kerberos, pytest.mark.timeout(0)]


@pytest.mark.parametrize("entry", read_listing().with_kdc.values(), ids=lambda entry: entry.name)
def test_a_class_of_apaches_tests_passes(entry: TestClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_TOOL_OPTIONS", "KRB5_CONFIG"):  # those of the KDC of other tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KRB5RCACHEDIR", str(tmp_path))
    check(entry, run_class(entry, tmp_path, entry.only))
