from __future__ import annotations

from odradek.broker.zookeeper.codes import is_word


def test_a_length_is_no_word() -> None:
    assert is_word(b"srvr")
    assert not is_word(b"\0\0\0\x2d")
    assert not is_word(b"\xff\xff\xff\xff")
    assert not is_word(b"abcd")
