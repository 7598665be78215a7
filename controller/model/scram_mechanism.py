"""The SCRAM mechanisms, with the computations of RFC 5802.

Only `salted_password` takes long: call it in the io pool.

Kafka: ScramMechanism, ScramFormatter.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum
from typing import TYPE_CHECKING, Final

from odradek.controller.model.scram_credential import ScramCredential

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ITERATIONS: Final = 16384

SALT_BITS: Final = 130
_SALT_DIGITS: Final = 26
_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(Enum):
    """The name, Kafka's code, and the name of the hash in `hashlib`."""

    SCRAM_SHA_256 = ("SCRAM-SHA-256", 1, "sha256")
    SCRAM_SHA_512 = ("SCRAM-SHA-512", 2, "sha512")

    def __init__(self, mechanism_name: str, code: int, hash_name: str) -> None:
        self.mechanism_name = mechanism_name
        self.code = code
        self.hash_name = hash_name

    @property
    def min_iterations(self) -> int:
        return 4096

    @property
    def hash_bytes(self) -> int:
        return hashlib.new(self.hash_name).digest_size

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Hi(password, salt, iterations): some milliseconds; releases the GIL."""
        return hashlib.pbkdf2_hmac(self.hash_name, password, salt, iterations)

    def credential(self, salt: bytes, salted_password: bytes, iterations: int) -> ScramCredential:
        stored_key = self.hash(self.client_key(salted_password))
        return ScramCredential(salt, stored_key, self.hmac(salted_password, b"Server Key"), iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Client Key")

    def client_proof(self, salted_password: bytes, auth_message: bytes) -> bytes:
        client_key = self.client_key(salted_password)
        return xor(client_key, self.hmac(self.hash(client_key), auth_message))

    def is_proof(self, proof: bytes, stored_key: bytes, auth_message: bytes) -> bool:
        """Whether the client that sent the proof knows the password."""
        signature = self.hmac(stored_key, auth_message)
        return len(proof) == len(signature) and hmac.compare_digest(self.hash(xor(proof, signature)), stored_key)


def salt_of(number: int) -> bytes:
    """A number of at most `SALT_BITS` bits as a salt: 26 digits of base 36 at most, in ASCII.

    Kafka: ScramFormatter.secureRandomString, UserScramCredentialUpsertion.
    """
    digits = bytearray(_SALT_DIGITS)
    for place in reversed(range(_SALT_DIGITS)):  # as many steps for each number
        number, digit = divmod(number, len(_DIGITS))
        digits[place] = _DIGITS[digit]
    return bytes(digits.lstrip(_DIGITS[:1])) or _DIGITS[:1]


def random_salt(random_bytes: Callable[[int], bytes]) -> bytes:
    """`random_bytes`: makes that many."""
    number = int.from_bytes(random_bytes(-(-SALT_BITS // 8)), "big")
    return salt_of(number & (1 << SALT_BITS) - 1)


def xor(one: bytes, other: bytes) -> bytes:
    """Of the same length."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


SCRAM_MECHANISMS: Final = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
