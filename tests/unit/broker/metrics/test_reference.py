from __future__ import annotations

from odradek.broker.metrics.families.families import FAMILIES
from odradek.broker.metrics.reference import page
from tests.support.processes.apache.jvm import REPOSITORY


def test_the_page_is_that_of_the_tables() -> None:
    text = page()
    assert all(f"| `{family.name}`" in text for family in FAMILIES)
    found = (REPOSITORY / "docs" / "metrics.md").read_text("utf-8")
    assert found == text, "run: python -m odradek.broker.metrics.reference > docs/metrics.md"
