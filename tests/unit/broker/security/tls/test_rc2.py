from __future__ import annotations

import pytest

from odradek.broker.security.tls.rc2 import BLOCK_BYTES, decrypt_cbc

IV = bytes(range(BLOCK_BYTES))


@pytest.mark.parametrize(
    ("key", "encrypted", "plain"),
    [
        ("ffffffffffffffff", "278b27e42e2f0d49", "ffffffffffffffff"),
        ("3000000000000000", "30649edf9be7d2c2", "1000000000000001"),
        ("88bca90e90875a7f0f79c384627bafb2", "2269552ab0f85ca6", "0000000000000000"),
    ],
)
def test_examples_of_rfc_2268(key: str, encrypted: str, plain: str) -> None:
    assert decrypt_cbc(bytes.fromhex(key), bytes(BLOCK_BYTES), bytes.fromhex(encrypted)).hex() == plain


def test_blocks_are_chained() -> None:
    key, block = bytes.fromhex("ffffffffffffffff"), bytes.fromhex("278b27e42e2f0d49")
    first = bytes(255 ^ byte for byte in IV)
    assert decrypt_cbc(key, IV, block * 2) == first + bytes(255 ^ byte for byte in block)
