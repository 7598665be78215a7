"""Encoded passwords with a fake cipher.

With the real one and Apache Kafka: `conformance/daemon/configs/test_dynamic_passwords.py`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from odradek.broker.config.password_encoder import ITERATIONS_MAX, PasswordEncoder, check_algorithms
from odradek.storage.config.config_def import ConfigError, Password
from tests.support.unsafe_ciphers import UnsafeCiphers

ENCODER = PasswordEncoder(secret=Password("s"), ciphers=UnsafeCiphers())


@pytest.mark.parametrize("password", ["", "secret", "pässword, with: everything", "😀" * 100])
def test_an_encoded_password_can_be_decoded(password: str) -> None:
    encoded = ENCODER.encode(password)
    assert ENCODER.decode(encoded) == password
    assert encoded != ENCODER.encode(password), "the salt is another one"


def test_the_text_says_how_it_was_encoded() -> None:
    strong = replace(ENCODER, key_factory_algorithm="PBKDF2WithHmacSHA1", key_length=256, iterations=1025)
    encoded = strong.encode("x😀")
    params = dict(pair.split(":") for pair in encoded.split(","))
    assert list(params) == [
        "initializationVector",
        "keyLength",
        "salt",
        "keyFactoryAlgorithm",
        "cipherAlgorithm",
        "iterations",
        "passwordLength",
        "encryptedPassword",
    ], "Apache Kafka's order"
    assert params["keyFactoryAlgorithm"] == "PBKDF2WithHmacSHA1"
    assert params["cipherAlgorithm"] == "AES/CBC/PKCS5Padding"
    assert (params["keyLength"], params["iterations"], params["passwordLength"]) == ("256", "1025", "3")
    assert ENCODER.decode(encoded) == "x😀", "whatever the settings of the reader are"


def test_another_secret_does_not_decode() -> None:
    with pytest.raises(ConfigError, match="Password could not be decoded"):
        replace(ENCODER, secret=Password("t")).decode(ENCODER.encode("x"))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("iterations:4096", "iterations:0"),
        ("iterations:4096", f"iterations:{ITERATIONS_MAX + 1}"),
        ("iterations:4096", "iterations:many"),
        ("AES/CBC/PKCS5Padding", "ROT13"),
        ("keyLength:128", "keyLength:8"),
        ("PBKDF2WithHmacSHA512", "MD5"),
        ("passwordLength:6", "passwordLength:7"),
        ("salt:[^,]*,", ""),
        ("salt:[^,]*,", "salt:?,"),
        (".*", "secret"),
        (".*", ""),
    ],
)
def test_an_invalid_text_is_refused_without_being_quoted(pattern: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ENCODER.decode(re.sub(pattern, text, ENCODER.encode("secret"), count=1))
    assert "secret" not in str(refused.value)


def test_iterations_up_to_the_bound_are_taken() -> None:
    assert check_algorithms(None, "AES/GCM/NoPadding", 192) is None
    with pytest.raises(ConfigError, match=str(ITERATIONS_MAX + 1)):
        replace(ENCODER, iterations=ITERATIONS_MAX + 1).encode("x")


def test_a_missing_package_is_named() -> None:
    class Missing(UnsafeCiphers):
        def seal(self, cipher: str, key: bytes, plain: bytes) -> None:  # type: ignore[override]
            raise ImportError("No module named 'cryptography'")

    with pytest.raises(ConfigError, match="cryptography"):
        replace(ENCODER, ciphers=Missing()).encode("x")
