from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.broker.security.tls.der import DerError
from odradek.broker.security.tls.distinguished_name import rfc2253

GOLDEN = json.loads((Path(__file__).parents[4] / "golden" / "distinguished_names.json").read_text())
"""Encoded names, and what `X500Principal.getName` of Java 17 prints for them."""


def test_names_are_printed_as_java_prints_them() -> None:
    assert [rfc2253(bytes.fromhex(encoded)) for encoded, _ in GOLDEN] == [java for _, java in GOLDEN]


def test_the_golden_names_have_every_special_case() -> None:
    text = " ".join(java for _, java in GOLDEN)
    for case in ("+", "=#0c", "\\,", "\\#", "\\ ", "\\00", "1.2.840.113549.1.9.1=#", "UID=", "DC=", "STREET=", "日本"):
        assert case in text, case


@pytest.mark.parametrize("encoded", ["", "30", "3003310130", "300631043002060a", "31033001ff"])
def test_bytes_that_are_no_name_are_refused(encoded: str) -> None:
    with pytest.raises(DerError):
        rfc2253(bytes.fromhex(encoded))
