"""What these schemes decrypt is tested with the stores in `test_pkcs12_entries.py`."""

from __future__ import annotations

import pytest

from odradek.broker.security.tls.der import DerError
from odradek.broker.security.tls.pkcs12_decryption import ITERATIONS_MAX, UnknownEncryption, decrypt

RC2_40 = bytes.fromhex("060a2a864886f70d010c0106")
RC4 = bytes.fromhex("060a2a864886f70d010c0101")
PBES2_OF_SCRYPT = bytes.fromhex("06092a864886f70d01050d") + bytes.fromhex(
    "3018" + "300d06092b06010401da47040b3000" + "300706035504033000"
)
SALT = bytes.fromhex("0402aabb")


def _parameters(iterations: bytes) -> bytes:
    content = SALT + bytes((2, len(iterations))) + iterations
    return bytes((0x30, len(content))) + content


def test_a_number_of_iterations_that_takes_long_is_refused() -> None:
    for iterations in (ITERATIONS_MAX + 1, 0, -1):
        with pytest.raises(DerError, match=f"{iterations} iterations"):
            decrypt(RC2_40 + _parameters(iterations.to_bytes(4, signed=True)), bytes(8), "secret")


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [(RC4 + _parameters(b"\x01"), "1.2.840.113549.1.12.1.1"), (PBES2_OF_SCRYPT, "1.3.6.1.4.1.11591.4.11")],
)
def test_what_is_not_known_is_named(algorithm: bytes, message: str) -> None:
    with pytest.raises(UnknownEncryption, match=message):
        decrypt(algorithm, bytes(8), "secret")


@pytest.mark.parametrize("size", [0, 7, 8])
def test_a_part_that_has_another_password_or_is_cut_off(size: int) -> None:
    with pytest.raises(DerError):
        decrypt(RC2_40 + _parameters(b"\x01"), bytes(size), "secret")
