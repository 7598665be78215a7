from __future__ import annotations

import pytest

from odradek.broker.security.authorizer.client_host import java_host


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a00:1", "2001:db8:0:0:0:0:a00:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("localhost", "localhost"),
    ],
)
def test_addresses_as_java_writes_them(text: str, written: str) -> None:
    assert java_host(text) == written
