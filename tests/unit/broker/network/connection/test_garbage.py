from __future__ import annotations

import pytest

from odradek.broker.network.connection.garbage import describe_garbage


@pytest.mark.parametrize(
    ("leading", "expected"),
    [
        (b"\x16\x03\x01\x00", "bad size; the client speaks TLS, but this listener is PLAINTEXT"),
        (b"GET ", "bad size; it looks like an HTTP request"),
        (b"PRI ", "bad size; it looks like an HTTP/2 request"),
        (b"SSH-", "bad size; it looks like an SSH client"),
        (b"\xff\xff\xff\xff", "bad size"),
        (b"", "bad size"),
    ],
)
def test_other_protocol_is_named(leading: bytes, expected: str) -> None:
    assert describe_garbage(ValueError("bad size"), leading) == expected
