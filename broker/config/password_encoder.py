"""Encrypts passwords of dynamic configs for the metadata, in the text format of Apache Kafka.

PBKDF2 derives a key from `password.encoder.secret`, and a block cipher encrypts with it. The text names all parameters
except the secret: `keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,...`.
So texts that were written with other settings, or by Apache Kafka, can be read.

The key derivation takes milliseconds and the cipher imports a package: call both methods in a thread of the I/O pool.

Kafka: EncryptingPasswordEncoder.
"""

from __future__ import annotations

import binascii
import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from odradek.broker.config.endpoint import parse_csv_map
from odradek.storage.config.config_def import ConfigError, Password

SALT_BYTES: Final = 256
BLOCK_BYTES: Final = 16
GCM_IV_BYTES: Final = 12
GCM_TAG_BITS: Final = 128
ITERATIONS_MAX: Final = 10_000_000
"""Limit for texts that are read: a text in the metadata must not occupy a thread for hours. Kafka's default is 4096."""

KEY_FACTORIES: Final[Mapping[str, str]] = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA384": "sha384",
    "PBKDF2WithHmacSHA512": "sha512",
}
"""Java's names of key factories, and Python's of their hashes."""

DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
CBC, GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"
CIPHERS: Final = (CBC, GCM)
KEY_BITS: Final = (128, 192, 256)


class Sealed(NamedTuple):
    """An encrypted text with its initialization vector."""

    initialization_vector: bytes
    encrypted: bytes


class Ciphers(Protocol):
    """`CIPHERS`, with a key of `KEY_BITS`."""

    def seal(self, cipher: str, key: bytes, plain: bytes) -> Sealed: ...

    def open(self, cipher: str, key: bytes, sealed: Sealed) -> bytes:
        """Raises: ValueError if it was not encrypted with this key."""


class AesCiphers:
    """The ciphers of the package `cryptography`, which is imported at the first use."""

    def seal(self, cipher: str, key: bytes, plain: bytes) -> Sealed:
        if cipher == GCM:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            vector = os.urandom(GCM_IV_BYTES)
            return Sealed(vector, AESGCM(key).encrypt(vector, plain, None))
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.padding import PKCS7

        vector = os.urandom(BLOCK_BYTES)
        padder = PKCS7(BLOCK_BYTES * 8).padder()
        encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
        return Sealed(vector, encryptor.update(padder.update(plain) + padder.finalize()) + encryptor.finalize())

    def open(self, cipher: str, key: bytes, sealed: Sealed) -> bytes:
        if cipher == GCM:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            try:
                return bytes(AESGCM(key).decrypt(sealed.initialization_vector, sealed.encrypted, None))
            except InvalidTag:
                raise ValueError("the tag does not agree") from None
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.padding import PKCS7

        decryptor = Cipher(algorithms.AES(key), modes.CBC(sealed.initialization_vector)).decryptor()
        unpadder = PKCS7(BLOCK_BYTES * 8).unpadder()
        padded = decryptor.update(sealed.encrypted) + decryptor.finalize()
        return bytes(unpadder.update(padded) + unpadder.finalize())


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordEncoder:
    """Encodes and decodes with one secret. The other settings are for `encode`; `decode` uses those in the text."""

    secret: Password
    key_factory_algorithm: str | None = None
    cipher_algorithm: str = CBC
    key_length: int = 128
    """Bits."""
    iterations: int = 4096
    ciphers: Ciphers = field(default_factory=AesCiphers)

    def encode(self, password: str) -> str:
        """Raises: ConfigError if the settings are not supported, or the package is not installed."""
        key_factory = self.key_factory_algorithm or DEFAULT_KEY_FACTORY
        salt = os.urandom(SALT_BYTES)
        key = self._key(key_factory, self.cipher_algorithm, self.key_length, salt, self.iterations)
        try:
            sealed = self.ciphers.seal(self.cipher_algorithm, key, password.encode())
        except ImportError as error:
            raise _missing(error) from error
        params = {  # in the order of Apache Kafka's text, which is that of a java.util.HashMap
            "initializationVector": b64encode(sealed.initialization_vector).decode(),
            "keyLength": str(self.key_length),
            "salt": b64encode(salt).decode(),
            "keyFactoryAlgorithm": key_factory,
            "cipherAlgorithm": self.cipher_algorithm,
            **({"authenticationTagLength": str(GCM_TAG_BITS)} if self.cipher_algorithm == GCM else {}),
            "iterations": str(self.iterations),
            "passwordLength": str(_length(password)),
            "encryptedPassword": b64encode(sealed.encrypted).decode(),
        }
        return ",".join(f"{name}:{value}" for name, value in params.items())

    def decode(self, encoded: str) -> str:
        """Raises: ConfigError for an invalid text or another secret. The message has no part of the text."""
        try:
            params = parse_csv_map("password", encoded)
            cipher, iterations = params["cipherAlgorithm"], int(params["iterations"])
            key_length, salt = int(params["keyLength"]), b64decode(params["salt"], validate=True)
            sealed = Sealed(
                b64decode(params["initializationVector"], validate=True),
                b64decode(params["encryptedPassword"], validate=True),
            )
            length, key_factory = int(params["passwordLength"]), params["keyFactoryAlgorithm"]
        except (ConfigError, KeyError, ValueError, binascii.Error):
            raise ConfigError("Password could not be decoded: it is not an encoded password") from None
        key = self._key(key_factory, cipher, key_length, salt, iterations)
        try:
            password = self.ciphers.open(cipher, key, sealed).decode()
        except ImportError as error:
            raise _missing(error) from error
        except ValueError:
            raise ConfigError("Password could not be decoded") from None
        if _length(password) != length:
            raise ConfigError("Password could not be decoded, sanity check of length failed")
        return password

    def _key(self, key_factory: str, cipher: str, bits: int, salt: bytes, iterations: int) -> bytes:
        check_algorithms(key_factory, cipher, bits)
        if not 0 < iterations <= ITERATIONS_MAX:
            raise ConfigError(f"Passwords are encoded in 1 to {ITERATIONS_MAX} iterations, not in {iterations}")
        digest = KEY_FACTORIES[key_factory]
        return hashlib.pbkdf2_hmac(digest, self.secret.value.encode(), salt, iterations, bits // 8)


def check_algorithms(key_factory: str | None, cipher: str, key_bits: int) -> None:
    """Raises: ConfigError for algorithms that are not supported here; Java may support more."""
    for name, value, known in (
        ("password.encoder.keyfactory.algorithm", key_factory or DEFAULT_KEY_FACTORY, tuple(KEY_FACTORIES)),
        ("password.encoder.cipher.algorithm", cipher, CIPHERS),
        ("password.encoder.key.length", key_bits, KEY_BITS),
    ):
        if value not in known:
            raise ConfigError(f"{name}={value} is not supported; {', '.join(map(str, known))} are.")


def _missing(error: ImportError) -> ConfigError:
    return ConfigError(f"Passwords in dynamic configs need the package cryptography ({error}): odradek[passwords]")


def _length(text: str) -> int:
    """The length in UTF-16 units, as in Java."""
    return len(text.encode("utf-16-le")) // 2
