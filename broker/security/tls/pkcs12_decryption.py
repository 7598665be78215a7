"""Decrypts the certificates of a PKCS12 file with its password: PBES2 (RFC 8018), and the older schemes of PKCS12.

`cryptography` decrypts them, too, but does not give the attributes that are stored with each certificate.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from odradek.broker.security.tls.der import (
    INTEGER,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    DerError,
    Element,
    object_identifier,
    values,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import BlockCipherAlgorithm

ITERATIONS_MAX: Final = 5_000_000
"""Of a key. Java's limit, too."""

_PBES2: Final = "1.2.840.113549.1.5.13"
_PBKDF2: Final = "1.2.840.113549.1.5.12"
_DIGESTS: Final = {
    "1.2.840.113549.2.7": "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
}
_AES_KEY_BYTES: Final = {
    "2.16.840.1.101.3.4.1.2": 16,
    "2.16.840.1.101.3.4.1.22": 24,
    "2.16.840.1.101.3.4.1.42": 32,
}
_TRIPLE_DES: Final = "1.2.840.113549.1.12.1.3"
_RC2_KEY_BYTES: Final = {"1.2.840.113549.1.12.1.5": 16, "1.2.840.113549.1.12.1.6": 5}
_FOR_KEY, _FOR_IV = 1, 2
_SHA1_BLOCK_BYTES: Final = 64
_BLOCK_BYTES_MIN: Final = 8
"""Of all ciphers here; others have blocks of 16 bytes."""


class UnknownEncryption(Exception):
    """The message names what is not known."""


def decrypt(algorithm: bytes, data: bytes, password: str) -> bytes:
    """Decrypt what was encrypted with an AlgorithmIdentifier, whose content is `algorithm`.

    With a wrong password, bytes without meaning may come out. Raises: DerError, UnknownEncryption.
    """
    if len(data) % _BLOCK_BYTES_MIN:
        raise DerError("an encrypted part is cut off")
    scheme, parameters = _algorithm(algorithm)
    if scheme == _PBES2:
        plain, block_bytes = _decrypt_pbes2(parameters, data, password)
    else:
        plain, block_bytes = _decrypt_pbes1(scheme, parameters, data, password)
    padding = plain[-1] if plain else 0
    if not 1 <= padding <= block_bytes:
        raise DerError("the end of an encrypted part is not valid")
    return plain[:-padding]


def _decrypt_pbes2(parameters: bytes, data: bytes, password: str) -> tuple[bytes, int]:
    derivation, encryption = values(parameters, SEQUENCE, SEQUENCE)[:2]
    name, derivation_parameters = _algorithm(derivation.content)
    if name != _PBKDF2:
        raise UnknownEncryption(f"key derivation {name}")
    salt, iterations, *more = values(derivation_parameters, OCTET_STRING, INTEGER)
    digest = next((_algorithm(field.content)[0] for field in more if field.tag == SEQUENCE), "1.2.840.113549.2.7")
    cipher, iv = _algorithm(encryption.content)
    if digest not in _DIGESTS or cipher not in _AES_KEY_BYTES:
        raise UnknownEncryption(f"PBES2 with {digest} and {cipher}")
    key = hashlib.pbkdf2_hmac(
        _DIGESTS[digest], password.encode(), salt.content, _iterations(iterations), _AES_KEY_BYTES[cipher]
    )
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    return _decrypt_cbc(AES(key), iv, data), 16


def _decrypt_pbes1(scheme: str, parameters: bytes, data: bytes, password: str) -> tuple[bytes, int]:
    if scheme != _TRIPLE_DES and scheme not in _RC2_KEY_BYTES:
        raise UnknownEncryption(f"encryption {scheme}")
    salt, iterations = values(parameters, OCTET_STRING, INTEGER)[:2]
    turns = _iterations(iterations)
    iv = _pkcs12_bytes(password, salt.content, turns, _FOR_IV, 8)
    key = _pkcs12_bytes(password, salt.content, turns, _FOR_KEY, _RC2_KEY_BYTES.get(scheme, 24))
    if scheme == _TRIPLE_DES:
        try:
            from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
        except ImportError:  # before version 43
            from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES

        return _decrypt_cbc(TripleDES(key), iv, data), 8
    from odradek.broker.security.tls.rc2 import decrypt_cbc

    return decrypt_cbc(key, iv, data), 8


def _decrypt_cbc(cipher: BlockCipherAlgorithm, iv: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC

    try:
        decryptor = Cipher(cipher, CBC(iv)).decryptor()
        return decryptor.update(data) + decryptor.finalize()
    except ValueError as error:  # a length that is no multiple of the block's
        raise DerError(str(error)) from None


def _pkcs12_bytes(password: str, salt: bytes, iterations: int, purpose: int, size: int) -> bytes:
    """The key derivation of RFC 7292, appendix B.2, with SHA-1."""
    secret = password.encode("utf-16-be") + b"\0\0"
    mixed = _repeated(salt) + _repeated(secret)
    derived = b""
    while len(derived) < size:
        digest = bytes((purpose,)) * _SHA1_BLOCK_BYTES + mixed
        for _ in range(iterations):
            digest = hashlib.sha1(digest, usedforsecurity=False).digest()
        derived += digest
        added = int.from_bytes(_repeated(digest)) + 1
        blocks = (mixed[at : at + _SHA1_BLOCK_BYTES] for at in range(0, len(mixed), _SHA1_BLOCK_BYTES))
        mixed = b"".join((int.from_bytes(block) + added).to_bytes(_SHA1_BLOCK_BYTES + 1)[1:] for block in blocks)
    return derived[:size]


def _repeated(text: bytes) -> bytes:
    """To whole blocks of SHA-1."""
    size = -(-len(text) // _SHA1_BLOCK_BYTES) * _SHA1_BLOCK_BYTES
    return (text * (size // max(1, len(text)) + 1))[:size]


def _algorithm(content: bytes) -> tuple[str, bytes]:
    """The identifier of an algorithm, and the content of its parameters, for a cipher its initial vector."""
    identifier, *parameters = values(content, OBJECT_IDENTIFIER)
    return object_identifier(identifier.content), parameters[0].content if parameters else b""


def _iterations(count: Element) -> int:
    iterations = int.from_bytes(count.content, signed=True)
    if not 1 <= iterations <= ITERATIONS_MAX:
        raise DerError(f"{iterations} iterations")
    return iterations
