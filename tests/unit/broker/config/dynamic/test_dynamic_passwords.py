"""Passwords of dynamic configs are encoded when they are stored, and decoded when they are read."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.dynamic.dynamic_passwords import Passwords
from odradek.broker.config.password_encoder import PasswordEncoder
from odradek.storage.config.config_def import ConfigError, Password
from odradek.storage.disk.ports import InlineIoPool
from tests.support.unsafe_ciphers import UnsafeCiphers

KEY = "listener.name.x.ssl.keystore.password"


def passwords(**settings: str) -> Passwords:
    named = {f"password.encoder.{name.replace('_', '.')}": text for name, text in settings.items()}
    return Passwords(BrokerConfig(named), InlineIoPool(), UnsafeCiphers())


def encoded_with(secret: str, text: str) -> str:
    return PasswordEncoder(secret=Password(secret), ciphers=UnsafeCiphers()).encode(text)


def test_only_passwords_are_encoded() -> None:
    kept = asyncio.run(passwords(secret="s").encoded({KEY: "word", "log.roll.ms": "5"}))
    assert kept["log.roll.ms"] == "5"
    assert kept[KEY].startswith("initializationVector:")
    assert asyncio.run(passwords(secret="s").decoded(kept)) == {KEY: "word", "log.roll.ms": "5"}


def test_without_a_secret_there_are_none(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        asyncio.run(passwords().encoded({KEY: "word"}))
    assert asyncio.run(passwords().encoded({"log.roll.ms": "5"})) == {"log.roll.ms": "5"}
    assert asyncio.run(passwords().decoded({KEY: "in plain text", "log.roll.ms": "5"})) == {"log.roll.ms": "5"}
    assert KEY in caplog.text
    assert "plain" not in caplog.text


def test_a_password_that_cannot_be_decoded_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    stored = {KEY: encoded_with("other", "word"), "log.roll.ms": "5"}
    assert asyncio.run(passwords(secret="s").decoded(stored)) == {"log.roll.ms": "5"}
    assert f"{KEY} could not be decoded" in caplog.text


def test_passwords_of_the_old_secret_are_encoded_again() -> None:
    new = passwords(secret="new", old_secret="old")
    other = "listener.name.x.ssl.key.password"
    stored = {KEY: encoded_with("old", "word"), other: encoded_with("new", "key"), "log.roll.ms": "5"}
    kept = asyncio.run(new.encoded_anew(stored))
    assert kept is not None
    assert kept[other] == stored[other], "it was encoded with the new secret before"
    assert asyncio.run(passwords(secret="new").decoded(kept)) == {KEY: "word", other: "key", "log.roll.ms": "5"}


def test_nothing_is_encoded_again_without_need() -> None:
    assert asyncio.run(passwords(secret="new").encoded_anew({KEY: encoded_with("old", "word")})) is None
    assert asyncio.run(passwords(secret="new", old_secret="old").encoded_anew({"log.roll.ms": "5"})) is None
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        asyncio.run(passwords(old_secret="old").encoded_anew({KEY: encoded_with("old", "word")}))


@pytest.mark.parametrize(
    "settings",
    [{"cipher_algorithm": "DES/CBC/PKCS5Padding"}, {"keyfactory_algorithm": "MD5"}, {"key_length": "64"}],
)
def test_algorithms_that_are_not_there_are_refused_by_name_at_the_start(settings: dict[str, str]) -> None:
    passwords(**settings)
    with pytest.raises(ConfigError, match="is not supported"):
        passwords(secret="s", **settings)
