"""Ciphers in place of AES, for tests of the code around it: reversible, and dependent on the key."""

from __future__ import annotations

from odradek.broker.config.password_encoder import Sealed


class UnsafeCiphers:
    """Implements `password_encoder.Ciphers`; the first bytes of the key tell a wrong one."""

    def seal(self, cipher: str, key: bytes, plain: bytes) -> Sealed:
        return Sealed(b"vector", key[:4] + plain[::-1])

    def open(self, cipher: str, key: bytes, sealed: Sealed) -> bytes:
        if sealed.encrypted[:4] != key[:4]:
            raise ValueError("another key")
        return sealed.encrypted[4:][::-1]
