"""Secrets of every kind, each with a text that occurs nowhere else, and where it is looked for.

A new kind of secret gets a row: in `STATIC`, `DYNAMIC` or `REFUSED` for a config, in `requests` for a field of a
request, in `refused_starts` for a setting that stops the start, in `objects` for an object that holds it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.broker.config.config_providers import Variable
from odradek.broker.config.config_sources import Settings
from odradek.broker.config.password_encoder import PasswordEncoder
from odradek.broker.security.sasl.plain import PlainSaslServer
from odradek.broker.security.sasl.ports import JaasEntry
from odradek.broker.security.tls.settings import StoreSettings
from odradek.broker.security.tls.stores import KeyStore
from odradek.broker.security.tokens.token_cache import DelegationToken
from odradek.controller.model.delegation_token import Principal, TokenInformation
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.storage.config.config_def import ConfigType, Password
from tests.support.certificates import Identity
from tests.support.wire.requests import build

LISTENER = "listener.name.plaintext."
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def canary(of: str) -> str:
    """A secret that names its kind."""
    return f"canary-7351-{of}"


def pem(of: str) -> str:
    body = base64.b64encode(canary(of).encode()).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"


def jaas(of: str) -> str:
    return f'{MODULE} username="u" password="{canary(of)}" user_u="{canary(of)}";'


def value_of(key: str) -> str:
    """A value for a secret config."""
    if key.endswith("sasl.jaas.config"):
        return jaas(key)
    return pem(key) if key.endswith((".key", ".chain", "certificates")) and "ssl." in key else canary(key)


def _static(name: str) -> str:
    """The key with the prefix of a listener without TLS: without it, the listener with TLS would use it."""
    return f"listener.name.sasl_plaintext.{name}" if name.startswith("ssl.") else name


STATIC = {
    _static(key.name): value_of(key.name) for key in BROKER_CONFIG_KEYS.values() if key.type is ConfigType.PASSWORD
}
"""Every key whose type is PASSWORD. `odradek.zookeeper.sasl.password` and others are without effect here."""

DYNAMIC = {
    LISTENER + key: value_of(LISTENER + key)
    for key in (
        "plain.sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
    )
}
"""Stored encrypted."""

UNKNOWN = {"company.password": canary("unknown-config")}
"""Stored as it is, as Apache Kafka does; it is not shown."""

REFUSED = {
    "ssl.keystore.password": canary("password-without-listener"),
    "password.encoder.secret": canary("read-only-password"),
    "config.providers.vault.param.token": canary("provider-of-a-request"),
}
"""Refused as dynamic configs."""

SALTED_PASSWORD = canary("salted-password").encode()
HMAC = canary("hmac-of-a-token").encode()
AUTH_BYTES = b"\0user\0" + canary("password-of-a-login").encode()

SASL_LISTENER = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} user_user="{canary("password-of-a-login")}";',
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
        f'{SCRAM} username="admin" password="{canary("password-of-the-broker")}";'
    ),
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
}
"""A login with AUTH_BYTES succeeds there."""

KEY_PASSWORD = canary("password-of-a-served-key")


def tls_listener(broker: Identity) -> dict[str, str]:
    """A listener with TLS whose key and its password are in the settings."""
    prefix = "listener.name.ssl."
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.key": broker.key_pem(KEY_PASSWORD),
        f"{prefix}ssl.keystore.certificate.chain": broker.chain_pem,
        f"{prefix}ssl.key.password": KEY_PASSWORD,
    }


WRONG_STORE = {
    "listener.name.ssl.ssl.keystore.location": "/not/there.p12",
    "listener.name.ssl.ssl.keystore.type": "PKCS12",
    "listener.name.ssl.ssl.keystore.password": canary("password-of-a-wrong-store"),
}
"""Refused as dynamic configs: the store cannot be opened."""

WRONG_LOGINS = (
    ("PLAIN", b"\0user\0" + canary("wrong-password").encode()),
    ("PLAIN", canary("not-a-login").encode()),
    ("SCRAM-SHA-256", b"n,,n=user,r=" + canary("nonce").encode()),
)
"""A mechanism and the bytes of the client."""


def configs(names: dict[str, str], *, resource_name: str = "0") -> Iterator[tuple[Request, int]]:
    """Both requests that change configs of a broker."""
    incremental = [{"name": name, "config_operation": 0, "value": value} for name, value in names.items()]
    plain = [{"name": name, "value": value} for name, value in names.items()]
    for api, version, rows in (
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, incremental),
        (ApiKey.ALTER_CONFIGS, 2, plain),
    ):
        resources = [{"resource_type": 4, "resource_name": resource_name, "configs": rows}]
        yield build(api, resources=resources), version


def requests() -> Iterator[tuple[Request, int]]:
    """Requests with secrets. Some are refused, and their answers must not quote them either."""
    for name, value in REFUSED.items():
        yield from configs({name: value})
    yield from configs(DYNAMIC, resource_name="")
    yield from configs(WRONG_STORE)
    yield from configs(DYNAMIC | UNKNOWN)
    upsertions = [
        {
            "name": "alice",
            "mechanism": mechanism,
            "iterations": 4096,
            "salt": b"salt",
            "salted_password": SALTED_PASSWORD,
        }
        for mechanism in (1, 2, 9)
    ]
    for upsertion in upsertions:
        yield build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=[upsertion]), 0
    yield build(ApiKey.RENEW_DELEGATION_TOKEN, hmac=HMAC, renew_period_ms=1), 2
    yield build(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=HMAC, expiry_time_period_ms=1), 2
    yield build(ApiKey.SASL_AUTHENTICATE, auth_bytes=AUTH_BYTES), 2


def refused_starts() -> Iterator[dict[str, str]]:
    """Settings that stop the start, among them a secret."""
    secret = canary("refused-start")
    yield {"password.encoder.secret": secret, "password.encoder.cipher.algorithm": "ROT13"}
    yield {"password.encoder.secret": secret, "num.partitions": "many"}
    yield {"zookeeper.connect": "127.0.0.1:1", "odradek.zookeeper.sasl.password": secret}
    yield {"zookeeper.connect": "127.0.0.1:1", "zookeeper.set.acl": "true", "zookeeper.ssl.keystore.password": secret}
    yield {f"company.password:{secret}": "x", "listeners": "nothing"}


def objects(of: str) -> Iterator[object]:
    """Objects that hold secrets: their reprs are in tracebacks and debuggers."""
    key = of.encode()
    credential = ScramCredential(key, key, key, 4096)
    owner = Principal("User", "alice")
    info = TokenInformation("id", owner, owner, (), 1, 2, 3)
    yield Password(of)
    yield BrokerConfig({"password.encoder.secret": of})
    yield BrokerConfig({"password.encoder.secret": of}).synonyms("password.encoder.secret")
    yield Settings({"password.encoder.secret": of})
    store = StoreSettings("PEM", None, Password(of), Password(of), Password(of), Password(of))
    yield store
    yield KeyStore("", of, Password(of), (), None)
    yield Variable("${env:X}", of)
    yield PasswordEncoder(secret=Password(of))
    yield credential
    yield JaasEntry(MODULE, {"password": of})
    yield PlainSaslServer(lambda user, password: password == of)
    yield DelegationToken(info, key, {"SCRAM-SHA-256": credential})
    yield ZooKeeperTls(key_password=of)
    yield ZooKeeperSettings(hosts="zk", sasl={"password": of}, tls=ZooKeeperTls(key_password=of))


def forms(secret: str) -> set[bytes]:
    """The secret as it may be written."""
    return forms_of(secret.encode())


def forms_of(data: bytes) -> set[bytes]:
    """As it is, in hex, and in base64 at any place of a longer text."""
    found = {data, data.hex().encode(), data.hex().upper().encode()}
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + data).rstrip(b"=")
        found.add(encoded[4 if shift else 0 : -2])
    return found


def all_secrets() -> list[str]:
    """Each canary once."""
    kinds = [
        *(name.removeprefix("listener.name.sasl_plaintext.") for name in STATIC),
        *DYNAMIC,
        "unknown-config",
        "password-without-listener",
        "read-only-password",
    ]
    kinds += ["provider-of-a-request", "salted-password", "hmac-of-a-token", "password-of-a-login", "refused-start"]
    kinds += ["password-of-the-broker", "wrong-password", "not-a-login"]
    kinds += ["password-of-a-served-key", "password-of-a-wrong-store"]
    return [canary(kind) for kind in kinds]
