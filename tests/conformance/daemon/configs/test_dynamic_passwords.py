"""Passwords of dynamic configs: Apache Kafka reads what Odradek has encoded, and the other way round; a broker keeps
them encrypted, over restarts and a change of its secret.
"""

from __future__ import annotations

import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

from odradek.broker.config.password_encoder import CBC, GCM, PasswordEncoder
from odradek.protocol.api import ApiKey
from odradek.storage.config.config_def import Password
from tests.support.processes.apache.jvm import program_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PROGRAM = Path(__file__).parents[3] / "support" / "jvm" / "PasswordOracle.java"

ENCODERS = [
    PasswordEncoder(secret=Password("secret")),
    PasswordEncoder(secret=Password("sécret, with all: sorts"), key_length=256, iterations=1024),
    PasswordEncoder(secret=Password("s"), key_factory_algorithm="PBKDF2WithHmacSHA1", key_length=192),
    PasswordEncoder(secret=Password("s"), key_factory_algorithm="PBKDF2WithHmacSHA256", cipher_algorithm=GCM),
]
PASSWORDS = ["password", "", "0123456789abcdef", "pässword 😀", "-----BEGIN PRIVATE KEY-----\n" + "x" * 2000]


def line(verb: str, encoder: PasswordEncoder, text: str) -> str:
    words = [
        encoder.secret.value,
        encoder.key_factory_algorithm or "",
        encoder.cipher_algorithm,
        str(encoder.key_length),
        str(encoder.iterations),
        text,
    ]
    return " ".join([verb, *(b64encode(word.encode()).decode() for word in words)])


def apache(lines: list[str]) -> list[str]:
    command = program_command(PROGRAM)
    finished = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr.decode()
    return [b64decode(answer).decode() for answer in finished.stdout.decode().splitlines()]


def test_each_reads_what_the_other_has_encoded() -> None:
    cases = [(encoder, password) for encoder in ENCODERS for password in PASSWORDS]
    ours = [line("decode", encoder, encoder.encode(password)) for encoder, password in cases]
    theirs = [line("encode", encoder, password) for encoder, password in cases]
    answers = apache(ours + theirs)
    assert answers[: len(cases)] == [password for _, password in cases]
    read = [encoder.decode(text) for (encoder, _), text in zip(cases, answers[len(cases) :], strict=True)]
    assert read == [password for _, password in cases]
    assert f"cipherAlgorithm:{CBC}" in answers[len(cases)]


NAME = "listener.name.plaintext.ssl.keystore.password"
PLAIN = b"open-sesame-7351"


def test_a_broker_keeps_passwords_encrypted_and_takes_a_new_secret(tmp_path: Path) -> None:
    broker = OdradekBroker(tmp_path / "broker", {"password.encoder.secret": "first"})
    broker.start()
    try:
        alter(broker, PLAIN.decode())
        described(broker)
        broker.stop()
        first_log = broker.log_text()
        assert PLAIN not in kept(tmp_path)
        for settings in (
            {"password.encoder.secret": "second", "password.encoder.old.secret": "first"},
            {"password.encoder.secret": "second"},
        ):
            broker = OdradekBroker(tmp_path / "broker", settings)
            broker.start()
            described(broker)
            broker.stop()
            assert "could not be decoded" not in broker.log_text()
        broker = OdradekBroker(tmp_path / "broker", {"password.encoder.secret": "third"})
        broker.start()
        broker.stop()
        assert f"{NAME} could not be decoded" in broker.log_text()
        assert PLAIN.decode() not in first_log + broker.log_text()
        assert PLAIN not in kept(tmp_path)
    finally:
        broker.close()


def kept(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def alter(broker: OdradekBroker, value: str) -> None:
    resource = {
        "resource_type": 4,
        "resource_name": "0",
        "configs": [{"name": NAME, "config_operation": 0, "value": value}],
    }
    client = RawClient(broker.host, broker.port)
    [response] = client.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource]), 1).responses  # type: ignore[attr-defined]
    client.close()
    assert response.error_code == 0, response


def described(broker: OdradekBroker) -> None:
    """The password is there, and hidden."""
    resource = {"resource_type": 4, "resource_name": "0", "configuration_keys": [NAME]}
    client = RawClient(broker.host, broker.port)
    [config] = eventually(
        lambda: client.call(build(ApiKey.DESCRIBE_CONFIGS, resources=[resource]), 4).results[0].configs,  # type: ignore[attr-defined]
        accept=bool,
    )
    client.close()
    assert (config.value, config.is_sensitive, config.config_source) == (None, True, 2)
