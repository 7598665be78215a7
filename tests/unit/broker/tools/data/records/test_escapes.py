from __future__ import annotations

from odradek.broker.tools.data.records.escapes import unescape


def test_unescape() -> None:
    assert unescape(r"\t\n\r\0\\\x7c%s\q") == b"\t\n\r\0\\|%s\\q"
