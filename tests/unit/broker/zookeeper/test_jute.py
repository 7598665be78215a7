from __future__ import annotations

import pytest

from odradek.broker.zookeeper import jute
from odradek.broker.zookeeper.jute import Acl, Identity, JuteError, Reader


def test_values_come_back() -> None:
    acls = [Acl(31, Identity("world", "anyone")), Acl(1, Identity(None, ""))]
    body = jute.integer(-7) + jute.string("é") + jute.string(None) + jute.buffer(b"x") + jute.acls(acls)
    reader = Reader(body + jute.strings(["a", ""]) + b"\2" + bytes(8))
    assert (reader.integer(), reader.string(), reader.string(), reader.buffer()) == (-7, "é", None, b"x")
    assert reader.acls() == acls
    assert reader.strings() == ["a", ""]
    assert reader.boolean() is True
    assert reader.long() == 0
    assert reader.remaining == 0


@pytest.mark.parametrize("body", [b"", b"\0\0", jute.integer(5) + b"abc", jute.integer(-2)])
def test_a_length_that_is_not_there_is_an_error(body: bytes) -> None:
    with pytest.raises(JuteError):
        Reader(body).string()


def test_a_count_that_cannot_fit_is_refused_before_anything_is_read() -> None:
    reader = Reader(jute.integer(3) + bytes(12 * 3 - 1))
    with pytest.raises(JuteError, match="3 items"):
        reader.acls()
    assert reader.remaining == 12 * 3 - 1
    assert Reader(jute.integer(-1)).acls() is None


def test_malformed_text_is_replaced_as_in_java() -> None:
    assert Reader(jute.buffer(b"/\xff")).string() == "/�"
