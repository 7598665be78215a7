"""Each client with each mechanism over TLS: it writes a record, and all others read it."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import pytest
from kafka.net.sasl.oauth import AbstractTokenProvider

from odradek.broker.config.keys.sasl import LOGIN, VALIDATOR
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.conformance.security.conftest import Certificates
from tests.support.broker import Broker
from tests.support.jwt import jwks, rsa_jwk, rsa_key, signed
from tests.support.processes.apache import newer_client
from tests.support.processes.apache.tool_runs import run_in_one_jvm
from tests.support.processes.apache.tools import TOOL_CLASSES
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import MECHANISMS, client_properties, listener_settings
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

TIMEOUT_S = 20
USER, PASSWORD = "alice", "canary-of-alice"
OAUTHBEARER, KEY_ID, AUDIENCE = "OAUTHBEARER", "key-1", "matrix"
JAVA_RECORDS = 3
JAVA_VALUE = b"from java"


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """For kafka-python."""

    def token(self) -> str:
        return token()


class AsyncTokenProvider(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    """For aiokafka."""

    async def token(self) -> str:
        return token()


def token() -> str:
    now = int(time.time())
    return signed({"sub": USER, "iat": now, "exp": now + 600, "aud": AUDIENCE}, rsa_key(), kid=KEY_ID)


class Listener(NamedTuple):
    """The SASL_SSL listener of a broker, and the certificate of its authority."""

    address: str
    ca: Path

    def librdkafka(self, mechanism: str) -> dict[str, object]:
        settings: dict[str, object] = {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": mechanism,
        }
        if mechanism == OAUTHBEARER:
            return settings | {"oauth_cb": lambda _: (token(), time.time() + 600)}
        return settings | {"sasl.username": USER, "sasl.password": PASSWORD}

    def python(self, mechanism: str, provider: type = TokenProvider) -> dict[str, object]:
        """For kafka-python and, with the other provider of tokens, for aiokafka."""
        settings: dict[str, object] = {
            "bootstrap_servers": self.address,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(self.ca)),
            "sasl_mechanism": mechanism,
        }
        if mechanism == OAUTHBEARER:
            return settings | {"sasl_oauth_token_provider": provider()}
        return settings | {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}

    def java(self, mechanism: str, directory: Path) -> str:
        """The text of a file."""
        if mechanism == OAUTHBEARER:
            (directory / "token").write_text(token())
            text = (
                f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nsasl.jaas.config={LOGIN_MODULE} required;\n"
                f"sasl.login.callback.handler.class={LOGIN}\n"
                f"sasl.oauthbearer.token.endpoint.url=file:{directory}/token\n"
            )
        else:
            text = client_properties(mechanism, USER, PASSWORD).replace("=SASL_PLAINTEXT", "=SASL_SSL")
        text += f"bootstrap.servers={self.address}\n"
        return f"{text}ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"


@pytest.fixture(scope="module")
def listener(
    make_broker: Callable[..., Broker], certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Listener]:
    port, sasl_port = free_port(), free_port()
    settings = certificates.broker_settings(**listener_settings(port, sasl_port)) | {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_SSL"
    }
    directory = tmp_path_factory.mktemp("oauth")
    (directory / "jwks.json").write_bytes(jwks(rsa_jwk(rsa_key(), kid=KEY_ID, alg="RS256", use="sig")))
    settings |= {
        "listener.name.auth.sasl.enabled.mechanisms": ",".join((*MECHANISMS, OAUTHBEARER)),
        "listener.name.auth.oauthbearer.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        "listener.name.auth.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{directory}/jwks.json",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    jaas = "listener.name.auth.plain.sasl.jaas.config"
    settings[jaas] = f'{settings[jaas].partition(" ")[0]} required user_{USER}="{PASSWORD}";'
    process = make_broker(tmp_path_factory.mktemp("matrix"), settings)
    process.port = port  # type: ignore[misc]
    process.start()  # type: ignore[attr-defined]
    listener = Listener(f"127.0.0.1:{sasl_port}", certificates.ca)
    with RawClient(process.host, port) as client:
        made = client.call(build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=credentials()), 0)
    assert {result.error_code for result in made.results} == {ErrorCode.NONE}  # type: ignore[attr-defined]
    eventually(lambda: knows_the_user(listener), timeout_s=TIMEOUT_S)
    yield listener
    process.stop()  # type: ignore[attr-defined]


def credentials() -> list[dict[str, object]]:
    salt, iterations = b"s" * 26, 4096
    return [
        {
            "name": USER,
            "mechanism": mechanism.code,
            "iterations": iterations,
            "salt": salt,
            "salted_password": mechanism.salted_password(PASSWORD.encode(), salt, iterations),
        }
        for mechanism in SCRAM_MECHANISMS.values()
    ]


def knows_the_user(listener: Listener) -> bool:
    admin = confluent_kafka.Producer({**listener.librdkafka(MECHANISMS[-1]), "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except confluent_kafka.KafkaException:
        return False


@pytest.mark.parametrize("mechanism", [*MECHANISMS, OAUTHBEARER])
def test_each_client_reads_what_each_has_written(
    listener: Listener, mechanism: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = unique("matrix")
    producer = confluent_kafka.Producer(listener.librdkafka(mechanism))
    producer.produce(topic, b"from librdkafka")
    assert producer.flush(TIMEOUT_S) == 0
    python = kafka.KafkaProducer(**listener.python(mechanism))
    python.send(topic, b"from kafka-python").get(TIMEOUT_S)
    python.close()
    asyncio.run(write_with_aiokafka(listener, mechanism, topic))
    config = tmp_path / "client.properties"
    config.write_text(listener.java(mechanism, tmp_path))
    others = {b"from librdkafka", b"from kafka-python", b"from aiokafka"}
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file:{tmp_path}/token"
    assert newer_client.write_and_read(config, topic, 4, allowed) == {*others, newer_client.VALUE}
    expected, count = {*others, newer_client.VALUE, JAVA_VALUE}, 4 + JAVA_RECORDS
    assert run_java(listener, config, topic, count) == expected

    consumer = confluent_kafka.Consumer(
        {**listener.librdkafka(mechanism), "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    records = [message for _ in range(count) if (message := consumer.poll(TIMEOUT_S)) is not None]
    consumer.close()
    assert {record.value() for record in records} == expected

    settings = listener.python(mechanism) | {"metadata_max_age_ms": METADATA_MAX_AGE_MS}
    other = kafka.KafkaConsumer(topic, auto_offset_reset="earliest", **settings)
    assert {next(other).value for _ in range(count)} == expected
    other.close()
    assert asyncio.run(read_with_aiokafka(listener, mechanism, topic, count)) == expected


async def write_with_aiokafka(listener: Listener, mechanism: str, topic: str) -> None:
    async with aiokafka.AIOKafkaProducer(**listener.python(mechanism, AsyncTokenProvider)) as producer:
        await asyncio.wait_for(producer.send_and_wait(topic, b"from aiokafka"), TIMEOUT_S)


async def read_with_aiokafka(listener: Listener, mechanism: str, topic: str, count: int) -> set[bytes]:
    settings = {"auto_offset_reset": "earliest", **listener.python(mechanism, AsyncTokenProvider)}
    async with aiokafka.AIOKafkaConsumer(topic, **settings) as consumer:
        return {(await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value for _ in range(count)}


def run_java(listener: Listener, config: Path, topic: str, count: int) -> set[bytes]:
    """Write with the Java producer, and return what the Java consumer reads."""
    payload = config.parent / "payload"
    payload.write_bytes(JAVA_VALUE)
    written, read = run_in_one_jvm(
        [
            (
                TOOL_CLASSES["producer-perf-test"],
                *("--topic", topic, "--num-records", str(JAVA_RECORDS), "--throughput", "-1"),
                *("--payload-file", str(payload), "--producer.config", str(config)),
                *("--producer-props", f"bootstrap.servers={listener.address}"),
            ),
            (
                TOOL_CLASSES["console-consumer"],
                *("--bootstrap-server", listener.address, "--consumer.config", str(config)),
                *("--topic", topic, "--from-beginning", "--max-messages", str(count), "--timeout-ms", "20000"),
            ),
        ]
    )
    assert written.status == 0, written.stderr
    assert read.status == 0, read.stderr
    return set(read.stdout.encode().splitlines())
