"""Brokers with a SASL listener and delegation tokens, and clients of both."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from odradek.broker.security.sasl.plain import LOGIN_MODULE as PLAIN_MODULE
from odradek.broker.security.sasl.scram import LOGIN_MODULE as SCRAM_MODULE
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.api import ApiKey
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build
from tests.support.wire.sasl_client import authenticate, handshake, log_in

USERS = ("alice", "bob", "carol")
SECRET_KEY = "the-key-of-all-brokers"
HOST = "127.0.0.1"


def settings_with_tokens(plaintext_port: int, sasl_port: int) -> dict[str, str]:
    users = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    prefix = "listener.name.sasl_plaintext"
    return {
        "listeners": f"PLAINTEXT://{HOST}:{plaintext_port},SASL_PLAINTEXT://{HOST}:{sasl_port}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{prefix}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "delegation.token.secret.key": SECRET_KEY,
    }


def plain_client(sasl_port: int, user: str) -> RawClient:
    client = RawClient(HOST, sasl_port)
    handshake(client, "PLAIN")
    answer = authenticate(client, f"\0{user}\0{user}-secret".encode())
    assert answer.error_code == 0, answer
    return client


def token_log_in(client: RawClient, token_id: str, hmac: bytes, mechanism: str = "SCRAM-SHA-256") -> Any:
    """The last answer of the broker."""
    password = b64encode(hmac).decode()
    sasl = ScramSaslClient(SCRAM_MECHANISMS[mechanism], token_id, password, "a-nonce-of-a-client", uses_token=True)
    return log_in(client, mechanism, sasl)


def create_token(client: RawClient, version: int = 3, **fields: object) -> Any:
    request = {"renewers": [], "max_lifetime_ms": -1, **fields}
    return client.call(build(ApiKey.CREATE_DELEGATION_TOKEN, **request), version)


def renew_token(client: RawClient, hmac: bytes, period_ms: int = -1) -> Any:
    return client.call(build(ApiKey.RENEW_DELEGATION_TOKEN, hmac=hmac, renew_period_ms=period_ms), 2)


def expire_token(client: RawClient, hmac: bytes, period_ms: int = -1) -> Any:
    return client.call(build(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=hmac, expiry_time_period_ms=period_ms), 2)


def describe_tokens(client: RawClient, owners: list[str] | None = None) -> Any:
    named = None if owners is None else [{"principal_type": "User", "principal_name": name} for name in owners]
    return client.call(build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=named), 3)
