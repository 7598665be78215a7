from __future__ import annotations

from odradek.storage.verification.findings import Finding


def test_a_finding_is_one_line() -> None:
    assert str(Finding("/data/t-0/x.log", 7, "what\nis  wrong")) == "/data/t-0/x.log:7: what is wrong"
    assert str(Finding("/data/meta.properties", None, "y")) == "/data/meta.properties: y"
