"""Settings of brokers with a SASL_PLAINTEXT listener `AUTH` beside the PLAINTEXT one, and of their clients.

Each password contains CANARY: it must appear in no log and no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CANARY: Final = "canary"
PASSWORDS: Final[Mapping[str, str]] = {"admin": f"{CANARY}-admin=,;", "alice": f"{CANARY} 'of' alice = x;"}
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def quoted(text: str) -> str:
    """A value of a JAAS entry, which stands in a properties file."""
    assert not {"\\", '"'} & set(text)
    return f'"{text}"'


def client_jaas(mechanism: str, user: str, password: str | None = None) -> str:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    text = PASSWORDS[user] if password is None else password
    return f"{module} required username={quoted(user)} password={quoted(text)};"


def client_properties(mechanism: str, user: str, password: str | None = None) -> str:
    """A file for `--command-config`."""
    jaas = client_jaas(mechanism, user, password)
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"


def listener_settings(port: int, sasl_port: int, *, between_brokers: str | None = None) -> dict[str, str]:
    """Settings of both listeners; `between_brokers`: the mechanism of requests between brokers, which use AUTH then."""
    users = " ".join(f"user_{user}={quoted(password)}" for user, password in PASSWORDS.items())
    plain = client_jaas("PLAIN", "admin").removesuffix(";")
    scram = client_jaas("SCRAM-SHA-512", "admin")
    jaas = {"plain": f"{plain} {users};", "scram-sha-256": scram, "scram-sha-512": scram}
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},AUTH://127.0.0.1:{sasl_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},AUTH://127.0.0.1:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT" if between_brokers is None else "AUTH",
        "sasl.mechanism.inter.broker.protocol": between_brokers or "PLAIN",
        "listener.name.auth.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.auth.{name}.sasl.jaas.config": text for name, text in jaas.items()},
    }
