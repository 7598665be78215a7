from __future__ import annotations

import pytest

from odradek.broker.security.sasl.oauth.access_token import (
    TOKEN_LENGTH_MAX,
    IllegalToken,
    decode_bytes,
    decode_object,
    is_number,
    split,
)
from tests.support.jwt import encoded


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.b.c.d", "a." * TOKEN_LENGTH_MAX, f"{'a' * TOKEN_LENGTH_MAX}.b."])
def test_a_token_has_three_parts(token: str) -> None:
    with pytest.raises(IllegalToken, match="expected three sections"):
        split(token)
    assert split(f"{'a' * (TOKEN_LENGTH_MAX - 3)}.b.")[1:] == ("b", "")


def test_base64_with_both_alphabets() -> None:
    assert decode_bytes("-_-_") == decode_bytes("+/+/") == b"\xfb\xff\xbf"
    assert decode_bytes("YQ") == decode_bytes("YQ==") == b"a"


@pytest.mark.parametrize("text", ["a", "a b", "YQ\n", "é", "Y=Q", "!"])
def test_what_is_no_base64(text: str) -> None:
    with pytest.raises(IllegalToken):
        decode_bytes(text)


def test_an_object() -> None:
    assert decode_object(encoded(b'{"a":[1,"x"]}')) == {"a": [1, "x"]}


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"1", b'"a"', b"null", b"{", b'{"a":1,"a":2}', b'{"a":NaN}', b"\xff", b'{"a":' * 100_000]
)
def test_what_is_no_object(data: bytes) -> None:
    with pytest.raises(IllegalToken, match="malformed JSON"):
        decode_object(encoded(data))


def test_numbers_that_can_be_times() -> None:
    assert all(map(is_number, (0, -1, 1.5, 2**53 - 1)))
    assert not any(map(is_number, (True, None, "1", 2**53, 1e400, float("-inf"), [1])))
