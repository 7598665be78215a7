"""OAUTHBEARER with real clients: unsigned tokens on one listener, signed ones on another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from odradek.broker.config.keys.sasl import LOGIN, UNSECURED_VALIDATOR, VALIDATOR
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE
from odradek.protocol.errors import ErrorCode
from tests.support.broker import Broker
from tests.support.jwt import jwks, other_rsa_key, rsa_jwk, rsa_key, signed, unsigned
from tests.support.processes.apache.tools import Tools
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient
from tests.support.wire.sasl_client import authenticate, handshake

pytestmark = pytest.mark.oracle

KEY_ID = "key-1"
AUDIENCE = "kafka-test"


class Listeners:
    def __init__(self, broker: Broker, unsecured: int, secured: int) -> None:
        self.broker = broker
        self.unsecured, self.secured = (f"{broker.host}:{port}" for port in (unsecured, secured))


@pytest.fixture(scope="module")
def listeners(make_broker: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    directory = tmp_path_factory.mktemp("oauth")
    (directory / "jwks.json").write_bytes(jwks(rsa_jwk(rsa_key(), kid=KEY_ID, alg="RS256", use="sig")))
    plain, unsecured, secured = free_port(), free_port(), free_port()
    addresses = f"PLAINTEXT://127.0.0.1:{plain},OPEN://127.0.0.1:{unsecured},SIGNED://127.0.0.1:{secured}"
    settings = {
        "listeners": addresses,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OPEN:SASL_PLAINTEXT,SIGNED:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.open.oauthbearer.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        "listener.name.open.oauthbearer.sasl.server.callback.handler.class": UNSECURED_VALIDATOR,
        "listener.name.signed.oauthbearer.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        "listener.name.signed.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{directory}/jwks.json",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    process = make_broker(directory / "broker", settings)
    process.port = plain
    process.start()
    yield Listeners(process, unsecured, secured)
    process.close()


def claims(**changes: object) -> dict[str, object]:
    now = int(time.time())
    return {"sub": "alice", "iat": now, "exp": now + 300, "aud": AUDIENCE, **changes}


def token(**changes: object) -> str:
    return signed(claims(**changes), rsa_key(), kid=KEY_ID)


def librdkafka(bootstrap: str, **settings: object) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "log_level": 0,
            **settings,
        }
    )


def with_token(bootstrap: str, text: str) -> AdminClient:
    client = librdkafka(bootstrap, oauth_cb=lambda _: (text, time.time() + 300))
    client.poll(0)
    return client


def test_librdkafka(listeners: Listeners) -> None:
    unsecured = librdkafka(
        listeners.unsecured,
        **{"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": "principal=alice"},
    )
    assert unsecured.list_topics(timeout=10).brokers
    assert with_token(listeners.secured, token()).list_topics(timeout=10).brokers


def test_kafka_python(listeners: Listeners) -> None:
    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token()

    client = KafkaAdminClient(
        bootstrap_servers=listeners.secured,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(),
    )
    client.list_topics()
    client.close()


def test_aiokafka(listeners: Listeners) -> None:
    class Provider(AsyncTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return token()

    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=listeners.secured,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        await producer.start()
        await producer.stop()

    asyncio.run(produce())


def test_java_with_an_unsigned_token_and_with_a_token_of_a_file(
    listeners: Listeners, tools: Tools, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(token())
    common = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
    unsecured, secured = tmp_path / "unsecured.properties", tmp_path / "secured.properties"
    unsecured.write_text(f'{common}sasl.jaas.config={LOGIN_MODULE} required unsecuredLoginStringClaim_sub="alice";\n')
    secured.write_text(
        f"{common}sasl.jaas.config={LOGIN_MODULE} required;\n"
        f"sasl.login.callback.handler.class={LOGIN}\n"
        f"sasl.oauthbearer.token.endpoint.url=file:{tmp_path}/token\n"
    )
    for bootstrap, config in ((listeners.unsecured, unsecured), (listeners.secured, secured)):
        tools.run("topics", "--bootstrap-server", bootstrap, "--command-config", str(config), "--list")


def without(claim: str) -> str:
    left = {name: value for name, value in claims().items() if name != claim}
    return signed(left, rsa_key(), kid=KEY_ID)


REFUSED: dict[str, Callable[[int], str]] = {
    "unsigned": lambda now: unsigned(claims()),
    "foreign": lambda now: signed(claims(), other_rsa_key(), kid=KEY_ID),
    "of another key id": lambda now: signed(claims(), rsa_key(), kid="key-2"),
    "expired": lambda now: token(iat=now - 400, exp=now - 100),
    "not yet valid": lambda now: token(nbf=now + 200),
    "of another audience": lambda now: token(aud="other"),
    "without audience": lambda now: without("aud"),
    "without a name": lambda now: without("sub"),
}
"""How each is made: their times count from the start of the test."""


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_a_refused_token_is_logged_once_and_not_shown(listeners: Listeners, make: Callable[[int], str]) -> None:
    text = make(int(time.time()))
    before = listeners.broker.log_text()
    host, port = listeners.secured.split(":")
    with RawClient(host, int(port)) as client:
        handshake(client, "OAUTHBEARER")
        answer = authenticate(client, ClientInitialResponse(text, "", {}).to_bytes())
        assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b'{"status":"invalid_token"}')
        answer = authenticate(client, b"\x01")
        assert (answer.error_code, answer.error_message) == (
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            '{"status":"invalid_token"}',
        )
    if listeners.broker.target == "odradek":  # Apache Kafka writes some refused tokens into its log
        logged = listeners.broker.log_text().removeprefix(before)
        assert text not in logged
        assert logged.count("The OAUTHBEARER token of a client is refused") == 1, logged


def test_a_session_ends_with_the_token(listeners: Listeners) -> None:
    host, port = listeners.secured.split(":")
    with RawClient(host, int(port)) as client:
        handshake(client, "OAUTHBEARER")
        answer = authenticate(client, ClientInitialResponse(token(), "", {}).to_bytes())
        assert 0 < answer.session_lifetime_ms <= 300_000


def test_who_asks_for_another_name_is_refused(listeners: Listeners) -> None:
    host, port = listeners.secured.split(":")
    with RawClient(host, int(port)) as client:
        handshake(client, "OAUTHBEARER")
        answer = authenticate(client, ClientInitialResponse(token(), "bob", {}).to_bytes())
        assert answer.error_message == (
            "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
            "principal name (alice)"
        )
