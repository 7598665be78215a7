"""SASL_PLAINTEXT: real clients with each mechanism, and refusals, alike for Odradek and Apache Kafka."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import aiokafka
import confluent_kafka
import kafka
import pytest

from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.broker import Broker
from tests.support.processes.apache.tools import Tools
from tests.support.processes.ports import free_port
from tests.support.processes.refusals import logged, logged_once
from tests.support.processes.sasl_listeners import (
    CANARY,
    MECHANISMS,
    PASSWORDS,
    client_properties,
    listener_settings,
)
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient

pytestmark = pytest.mark.oracle

MAX_REAUTH_MS = 3_600_000
INVALID_CREDENTIALS = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"


class SaslBroker(NamedTuple):
    process: Broker
    sasl_port: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"

    def connect(self) -> RawClient:
        return RawClient("127.0.0.1", self.sasl_port)


@pytest.fixture(scope="module")
def broker(
    make_broker: Callable[..., Broker], tmp_path_factory: pytest.TempPathFactory, tools: Tools
) -> Iterator[SaslBroker]:
    """A broker whose users have SCRAM credentials, made by Apache's tool over PLAIN."""
    port, sasl_port = free_port(), free_port()
    settings = listener_settings(port, sasl_port) | {
        "sasl.server.max.receive.size": "1000",
        "listener.name.auth.scram-sha-256.connections.max.reauth.ms": str(MAX_REAUTH_MS),
    }
    directory = tmp_path_factory.mktemp("sasl")
    process = make_broker(directory / "broker", settings)
    process.port = port  # type: ignore[misc]
    process.start()  # type: ignore[attr-defined]
    admin = directory / "admin.properties"
    admin.write_text(client_properties("PLAIN", "admin"))
    # A password in a credential of this tool must not contain `]` or `,`, so alice has another one for SCRAM.
    credentials = ",".join(f"{name}=[iterations=4096,password={SCRAM_PASSWORD}]" for name in MECHANISMS[1:])
    which = ("--entity-type", "users", "--entity-name", "alice")
    tools.run(
        "configs", "--bootstrap-server", f"127.0.0.1:{sasl_port}", "--command-config", str(admin), "--alter", *which,
        "--add-config", credentials,
    )  # fmt: skip
    found = SaslBroker(process, sasl_port)
    eventually(lambda: authenticates(found, "SCRAM-SHA-512"), timeout_s=10)
    yield found
    log = process.log_text()
    process.stop()  # type: ignore[attr-defined]
    assert "Failed authentication with /127.0.0.1" in log
    if process.target == "odradek":
        assert CANARY not in log
        assert "Traceback" not in log


SCRAM_PASSWORD = f"{CANARY}-of-scram"


def password_for(mechanism: str) -> str:
    return PASSWORDS["alice"] if mechanism == "PLAIN" else SCRAM_PASSWORD


def handshake(client: RawClient, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    answer = client.call(SaslHandshakeRequest(mechanism=mechanism), version)
    assert isinstance(answer, SaslHandshakeResponse)
    return answer


def token(client: RawClient, data: bytes, version: int = 2) -> SaslAuthenticateResponse:
    answer = client.call(SaslAuthenticateRequest(auth_bytes=data), version)
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer


def exchange(client: RawClient, mechanism: str, user: str, password: str) -> SaslAuthenticateResponse:
    """The last answer of the exchange."""
    if mechanism == "PLAIN":
        return token(client, f"\0{user}\0{password}".encode())
    scram = ScramSaslClient(SCRAM_MECHANISMS[mechanism], user, password, "a-nonce")
    first = token(client, scram.evaluate_challenge(b"") or b"")
    if first.error_code:
        return first
    return token(client, scram.evaluate_challenge(bytes(first.auth_bytes)) or b"")


def authenticates(broker: SaslBroker, mechanism: str) -> bool:
    with broker.connect() as client:
        handshake(client, mechanism)
        return exchange(client, mechanism, "alice", password_for(mechanism)).error_code == 0


def closed(client: RawClient) -> bool:
    try:
        client.receive_frame()
    except (ConnectionClosedError, ConnectionResetError):
        return True
    return False


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_clients_produce_and_consume(broker: SaslBroker, mechanism: str, unique: Callable[[str], str]) -> None:
    topic, password = unique("sasl"), password_for(mechanism)
    settings = {
        "bootstrap.servers": broker.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"from librdkafka")
    assert producer.flush(20) == 0
    python = {
        "bootstrap_servers": broker.address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", metadata_max_age_ms=METADATA_MAX_AGE_MS, **python
    )
    [record] = next(iter(consumer.poll(20_000).values()))
    assert record.value == b"from librdkafka"
    consumer.close()

    async def run() -> None:
        async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **python) as other:
            found = await asyncio.wait_for(other.getone(), 20)
            assert found.value == b"from librdkafka"

    asyncio.run(run())


def test_apaches_tool_with_the_wrong_password(broker: SaslBroker, tools: Tools, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(client_properties("SCRAM-SHA-512", "alice", f"{CANARY}-wrong"))
    arguments = ("--bootstrap-server", broker.address, "--command-config", str(config))
    with logged(broker.process, f"{CANARY}-wrong"):  # Apache's admin client may connect once more before it ends
        result = tools.run("topics", *arguments, "--list", status=1)
    assert INVALID_CREDENTIALS.format("SCRAM-SHA-512") in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("mechanism", "user", "password", "message"),
    [
        ("PLAIN", "alice", "wrong", "Authentication failed: Invalid username or password"),
        ("PLAIN", "nobody", "wrong", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "alice", "wrong", INVALID_CREDENTIALS.format("SCRAM-SHA-256")),
        ("SCRAM-SHA-512", "nobody", "wrong", INVALID_CREDENTIALS.format("SCRAM-SHA-512")),
        ("SCRAM-SHA-512", "admin", "wrong", INVALID_CREDENTIALS.format("SCRAM-SHA-512")),
    ],
)
def test_wrong_passwords(broker: SaslBroker, mechanism: str, user: str, password: str, message: str) -> None:
    with logged_once(broker.process, password), broker.connect() as client:
        handshake(client, mechanism)
        answer = exchange(client, mechanism, user, password)
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        assert closed(client)


def test_another_authorization_id(broker: SaslBroker) -> None:
    message = "Authentication failed: Client requested an authorization id that is different from username"
    with logged_once(broker.process), broker.connect() as client:
        handshake(client, "PLAIN")
        answer = token(client, f"admin\0alice\0{PASSWORDS['alice']}".encode())
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    with logged_once(broker.process), broker.connect() as client:
        handshake(client, "SCRAM-SHA-256")
        answer = token(client, b"n,a=admin,n=alice,r=x")
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)


def test_a_replayed_final_message(broker: SaslBroker) -> None:
    scram = ScramSaslClient(SCRAM_MECHANISMS["SCRAM-SHA-256"], "alice", SCRAM_PASSWORD, "a-nonce")
    first = scram.evaluate_challenge(b"") or b""
    with broker.connect() as client:
        handshake(client, "SCRAM-SHA-256")
        final = scram.evaluate_challenge(bytes(token(client, first).auth_bytes)) or b""
        assert token(client, final).error_code == 0
    with logged_once(broker.process), broker.connect() as client:
        handshake(client, "SCRAM-SHA-256")
        token(client, first)
        assert token(client, final).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_mechanisms_are_named(broker: SaslBroker) -> None:
    with broker.connect() as client:
        answer = handshake(client, "GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
        assert closed(client)


def test_the_versions_are_the_same_before_and_after(broker: SaslBroker) -> None:
    with broker.connect() as client:
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        before = client.call(request, 3)
        handshake(client, "PLAIN")
        assert exchange(client, "PLAIN", "alice", PASSWORDS["alice"]).error_code == 0
        after = client.call(request, 3)
        assert isinstance(before, ApiVersionsResponse)
        assert isinstance(after, ApiVersionsResponse)
        assert before.api_keys == after.api_keys
        assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert token(client, b"").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_bare_tokens_after_version_0_of_the_handshake(broker: SaslBroker) -> None:
    with broker.connect() as client:
        assert handshake(client, "PLAIN", 0).error_code == 0
        client.send_frame(f"\0alice\0{PASSWORDS['alice']}".encode())
        assert client.receive_frame() == b""
        assert client.call(MetadataRequest(topics=[]), 1)


def test_requests_before_authentication(broker: SaslBroker) -> None:
    with broker.connect() as client:
        client.send(MetadataRequest(topics=[]), 1)
        assert closed(client)
    with broker.connect() as client:
        handshake(client, "PLAIN")
        answer = client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert isinstance(answer, SaslHandshakeResponse)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert closed(client)
    with broker.connect() as client:
        client.call(ApiVersionsRequest(), 0)
        client.send(ApiVersionsRequest(), 0)
        assert closed(client)


@pytest.mark.parametrize("size", [1001, 2**31 - 1, -1])
def test_large_frames_before_authentication(broker: SaslBroker, size: int) -> None:
    with broker.connect() as client:
        client.send_bytes(struct.pack(">i", size))
        assert closed(client)


def test_a_session_has_the_lifetime_of_its_mechanism(broker: SaslBroker) -> None:
    for mechanism, lifetime_ms in (("SCRAM-SHA-256", MAX_REAUTH_MS), ("PLAIN", 0)):
        with broker.connect() as client:
            handshake(client, mechanism)
            answer = exchange(client, mechanism, "alice", password_for(mechanism))
            assert answer.session_lifetime_ms == lifetime_ms


def test_a_client_authenticates_again(broker: SaslBroker) -> None:
    with broker.connect() as client:
        handshake(client, "SCRAM-SHA-256")
        exchange(client, "SCRAM-SHA-256", "alice", SCRAM_PASSWORD)
        assert client.call(MetadataRequest(topics=[]), 1)
        handshake(client, "SCRAM-SHA-256")
        assert exchange(client, "SCRAM-SHA-256", "alice", SCRAM_PASSWORD).session_lifetime_ms == MAX_REAUTH_MS
        assert client.call(MetadataRequest(topics=[]), 1)
    with broker.connect() as client:
        handshake(client, "SCRAM-SHA-256")
        exchange(client, "SCRAM-SHA-256", "alice", SCRAM_PASSWORD)
        handshake(client, "SCRAM-SHA-512")
        client.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2)
        assert closed(client)
