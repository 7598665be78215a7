from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar, NoReturn

import pytest

from odradek.broker.apis.connection import api_versions
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.authentication.authentication import Authentications
from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
from odradek.broker.network.authentication.principals import Principals
from odradek.broker.network.frames.memory_pool import MemoryPool
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.security.principal_builder import AuthenticationContext, KafkaPrincipalBuilder
from odradek.broker.security.sasl.kerberos import gssapi
from odradek.broker.security.sasl.kerberos.exchanges import CLIENT_CHOICE, SERVER_OFFER
from odradek.broker.security.sasl.kerberos.krb5_login import LOGIN_MODULE as KRB5
from odradek.broker.security.sasl.mechanisms import SaslParts
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.storage.disk.ports import InlineIoPool
from tests.support.in_process.connections.dispatching import Broker
from tests.support.in_process.connections.network import Link
from tests.support.in_process.security.sasl_contexts import Credentials, slots
from tests.support.in_process.security.scripted_contexts import ScriptedContext, ScriptedLibrary, sealed

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="canary-1" user_bob="canary-2";'
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:1,AUTH://127.0.0.1:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT",
    "listener.name.auth.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.auth.plain.sasl.jaas.config": JAAS,
    "listener.name.auth.plain.connections.max.reauth.ms": "10000",
    "listener.name.auth.sasl.server.max.receive.size": "1000",
}


def no_tls() -> NoReturn:
    raise AssertionError("no listener has TLS")


class Server(Broker):
    """A broker with the SASL listener AUTH; `link` is a connection to it."""

    def __init__(self, pool_bytes: int = 0, **settings: str) -> None:
        super().__init__()
        if pool_bytes:
            self.owner.memory_pool = MemoryPool(pool_bytes, self.owner.call_soon)
            self.link = Link(self.owner)
        self.config = BrokerConfig(SETTINGS | settings)
        clock = self.owner.clock
        self.authentications = Authentications(
            self.config,
            SaslParts(clock, InlineIoPool(), bytes, Credentials(), None, slots()),
            self.timer,
            self.in_background,
            lambda request, version, connection: api_versions.response_to(request, version, connection, self.config, 0),
            api_versions.unsupported_version_response,
        )
        self.authentications.load_listeners()
        self.counts = AuthenticationCounts()
        self.principals = Principals(self.config, no_tls)
        self.principals.load_listeners()
        self.link.connection.listener_name = "AUTH"
        self.begin(self.link)
        self.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: ctx.reply(HeartbeatResponse()))

    def begin(self, link: Link) -> None:
        connection = link.connection
        self.authentications.begin(connection, partial(self.principals.principal_of_user, connection), self.counts)

    def handshake(self) -> None:
        assert self.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0  # type: ignore[attr-defined]

    def token(self, token: bytes) -> None:
        self.send(
            encode_request(
                RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 5, "me"), SaslAuthenticateRequest(auth_bytes=token)
            )
        )

    def authenticate(self, token: bytes = b"\0alice\0canary-1") -> SaslAuthenticateResponse:
        self.handshake()
        self.token(token)
        response = self.answer(ApiKey.SASL_AUTHENTICATE, 2)
        assert isinstance(response, SaslAuthenticateResponse)
        return response

    def advance(self, ms: int) -> None:
        self.owner.clock.advance(ms)
        self.timer.advance()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


def test_requests_are_served_after_authentication(server: Server) -> None:
    connection = server.link.connection
    assert not connection.is_authenticated
    assert server.call(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]
    assert server.authenticate().session_lifetime_ms == 10_000
    assert connection.is_authenticated
    assert connection.principal == "User:alice"
    assert server.call(HeartbeatRequest(), 0) == HeartbeatResponse()
    large = HeartbeatRequest(group_id="g" * 2000)
    assert server.call(large, 0) == HeartbeatResponse(), "the small limit is lifted"
    counts = server.counts
    assert (counts.successful_authentication, counts.failed_authentication) == (1, 0)


def test_a_session_without_an_end_costs_later_requests_nothing() -> None:
    server = Server(**{"listener.name.auth.plain.connections.max.reauth.ms": "0"})
    server.authenticate()
    assert server.link.connection.authentication is None
    server.close()


def test_a_refused_client_gets_its_answer_after_the_delay_and_is_closed(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.handshake()
    server.token(b"\0alice\0canary-wrong")
    server.token(b"\0alice\0canary-1")
    server.advance(99)
    assert not server.link.wire.data
    assert not server.link.transport.is_aborted
    server.advance(1)
    response = server.answer(ApiKey.SASL_AUTHENTICATE, 2)
    assert response == SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
        error_message="Authentication failed: Invalid username or password",
    )
    assert server.closed() == (CloseReason.AUTHENTICATION_FAILED, "")
    lines = [record.message for record in caplog.records if "Failed authentication" in record.message]
    assert lines == [
        "Failed authentication with /192.0.2.1:50000 (Authentication failed: Invalid username or password)"
    ]
    assert "canary" not in caplog.text
    counts = server.counts
    assert (counts.successful_authentication, counts.failed_authentication) == (0, 1)


def test_without_a_delay_it_is_closed_at_once() -> None:
    server = Server(**{"connection.failed.authentication.delay.ms": "0"})
    server.handshake()
    server.token(b"")
    assert decode_response(ApiKey.SASL_AUTHENTICATE, 2, bytes(server.link.wire.data[4:]))[0] == 5
    assert server.closed()[0] is CloseReason.AUTHENTICATION_FAILED
    server.close()


def test_a_client_that_goes_during_the_delay_is_forgotten(server: Server) -> None:
    server.handshake()
    server.token(b"")
    server.link.connection.connection_lost(OSError("reset"))
    server.advance(100)
    assert len(server.owner.closed) == 1


@pytest.mark.parametrize("size", [1001, 2**31 - 1, -1])
def test_a_frame_above_the_limit_is_refused_before_it_is_read(server: Server, size: int) -> None:
    server.config.apply_dynamic(broker={"listener.name.auth.sasl.server.max.receive.size": "2000"}, default={})
    server.begin(server.link)  # the listener keeps the limit with which it was opened
    server.link.receive(struct.pack(">i", size))
    assert not server.link.transport.is_reading
    assert not server.link.transport.is_aborted
    server.advance(100)
    assert not server.link.wire.data
    assert server.closed()[0] is CloseReason.AUTHENTICATION_FAILED


def test_a_frame_of_the_limit_is_read(server: Server) -> None:
    frame = struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, 1, 5, 2) + b"me" + struct.pack(">h", 986) + b"x" * 986
    assert len(frame) == 1000
    server.send(frame)
    server.advance(100)
    assert server.answer(ApiKey.SASL_HANDSHAKE, 1).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM  # type: ignore[attr-defined]


def test_a_packet_that_cannot_be_read_closes_the_connection_at_once(server: Server) -> None:
    server.handshake()
    server.send(b"garbage")
    assert server.closed()[0] is CloseReason.INVALID_REQUEST


def test_a_request_after_the_end_of_the_session_closes_the_connection(server: Server) -> None:
    server.authenticate()
    server.advance(10_000)
    assert server.call(HeartbeatRequest(), 0) == HeartbeatResponse()
    server.advance(1)
    server.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 0, 5, "me"), HeartbeatRequest()))
    assert server.closed()[0] is CloseReason.SESSION_EXPIRED
    counts = server.counts
    assert counts.expired_connections_killed == 1


def test_a_client_authenticates_again_also_when_the_session_has_ended(server: Server) -> None:
    server.authenticate()
    server.advance(20_000)
    assert server.authenticate().session_lifetime_ms == 10_000
    assert server.call(HeartbeatRequest(), 0) == HeartbeatResponse()
    counts = server.counts
    assert (counts.successful_authentication, counts.successful_reauthentication) == (1, 1)


def test_another_user_in_a_session_fails_a_reauthentication(server: Server) -> None:
    server.authenticate()
    server.handshake()
    server.token(b"\0bob\0canary-2")
    server.advance(100)
    assert server.closed()[0] is CloseReason.AUTHENTICATION_FAILED
    counts = server.counts
    assert (counts.failed_authentication, counts.failed_reauthentication) == (0, 1)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("listener.name.auth.plain.sasl.jaas.config", "", "Login module not specified"),
        ("listener.name.auth.sasl.enabled.mechanisms", "DIGEST-MD5", "SASL mechanism DIGEST-MD5 is not supported"),
        ("listener.name.auth.sasl.enabled.mechanisms", "", "No SASL mechanisms are enabled"),
        ("listener.name.auth.sasl.enabled.mechanisms", "SCRAM-SHA-256", "Could not find a 'KafkaServer'"),
    ],
)
def test_a_listener_that_cannot_authenticate_refuses_the_start(name: str, text: str, message: str) -> None:
    with pytest.raises(StartupError, match=message):
        Server(**{name: text})


def test_an_answer_that_comes_later_holds_the_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from odradek.broker.security.sasl.plain import PlainSaslServer

    checked = asyncio.Event()
    check = PlainSaslServer.evaluate_response

    async def later(one: PlainSaslServer, token: bytes) -> bytes:
        await checked.wait()
        return check(one, token)

    monkeypatch.setattr(PlainSaslServer, "evaluate_response", later)

    async def run() -> None:
        server.handshake()
        server.token(b"\0alice\0canary-1")
        server.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 0, 5, "me"), HeartbeatRequest()))
        await asyncio.sleep(0)
        assert not server.link.wire.data
        checked.set()
        await asyncio.gather(*server.tasks)
        server.link.owner.run_soon()

    asyncio.run(run())
    assert server.link.connection.is_authenticated
    data = bytes(server.link.wire.data)
    (size,) = struct.unpack_from(">i", data)
    assert len(data) > 4 + size, "the request that waited is answered too"


@pytest.mark.parametrize("is_later", [False, True])
def test_an_unexpected_error_closes_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_later: bool
) -> None:
    from odradek.broker.security.sasl.plain import PlainSaslServer

    def fail(one: PlainSaslServer, token: bytes) -> bytes:
        raise RuntimeError("a bug")

    async def fail_later(one: PlainSaslServer, token: bytes) -> bytes:
        raise RuntimeError("a bug")

    monkeypatch.setattr(PlainSaslServer, "evaluate_response", fail_later if is_later else fail)

    async def run() -> None:
        server.handshake()
        server.token(b"\0alice\0canary-1")
        await asyncio.gather(*server.tasks)

    asyncio.run(run())
    assert server.closed() == (CloseReason.INVALID_REQUEST, "an unexpected error, before authentication")
    assert "Unexpected error from /192.0.2.1:50000; closing connection" in caplog.text
    assert "a bug" in caplog.text
    counts = server.counts
    assert (counts.successful_authentication, counts.failed_authentication) == (0, 0)


def test_the_small_limit_is_that_of_a_connection_of_this_listener_alone(server: Server) -> None:
    other = Link(server.owner)
    other.receive(struct.pack(">i", 1001))
    assert not other.transport.is_aborted


def test_clients_that_are_not_authenticated_take_no_memory_of_the_pool() -> None:
    server = Server(pool_bytes=900)
    pool = server.owner.memory_pool
    assert pool is not None
    others = [Link(server.owner) for _ in range(3)]
    for other in others:
        other.connection.listener_name = "AUTH"
        server.begin(other)
        other.receive(struct.pack(">i", 1000) + b"x" * 10)
    assert pool.available == 900
    server.authenticate()
    server.link.receive(struct.pack(">i", 100) + b"x" * 10)
    assert pool.available == 800, "later requests take theirs"
    server.close()


def test_the_frames_of_a_reauthentication_take_no_memory_of_the_pool() -> None:
    server = Server(pool_bytes=900)
    pool = server.owner.memory_pool
    assert pool is not None
    server.authenticate()
    server.handshake()
    server.link.receive(struct.pack(">i", 1000) + b"x" * 10)
    assert pool.available == 900
    server.close()


class ByMechanism(KafkaPrincipalBuilder):
    """A class of the operator."""

    events: ClassVar[list[str]] = []

    def configure(self, configs: Mapping[str, str]) -> None:
        self.events.append(f"configured {configs['my.key']}")

    def build(self, context: AuthenticationContext) -> str:
        if context.authorization_id == "bob":
            raise ValueError("canary-text")
        return f"Robot:{context.sasl_mechanism}/{context.authorization_id}@{context.client_address}"

    def close(self) -> None:
        self.events.append("closed")


def test_a_class_names_the_users(caplog: pytest.LogCaptureFixture) -> None:
    ByMechanism.events.clear()
    path = {"listener.name.auth.principal.builder.class": f"{__name__}:ByMechanism", "listener.name.auth.my.key": "x"}
    server = Server(**path)
    server.authenticate()
    connection = server.link.connection
    assert connection.principal == f"Robot:PLAIN/alice@{connection.client_host}"
    server.close()
    server.principals.close()
    assert ByMechanism.events == ["configured x", "closed"]

    server = Server(**path)
    server.handshake()
    server.token(b"\0bob\0canary-2")
    server.advance(100)
    response = server.answer(ApiKey.SASL_AUTHENTICATE, 2)
    assert isinstance(response, SaslAuthenticateResponse)
    assert response.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"
    )
    assert f"principal.builder.class raised ValueError in {__file__}, line" in caplog.text
    assert "canary" not in caplog.text
    server.close()


def test_an_older_release_takes_tokens_without_a_request_around_them() -> None:
    """SaslHandshake v1 and SaslAuthenticate came with 1.0 (KIP-152)."""
    server = Server(**{"odradek.as.version": "0.11"})
    server.send(
        encode_request(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 5, "me"), SaslHandshakeRequest(mechanism="PLAIN"))
    )
    assert server.closed()[0] is CloseReason.INVALID_REQUEST
    server.close()


class WithKerberos:
    """A broker whose only mechanism is GSSAPI, for a client alice whose context has one token."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, context: ScriptedContext, **settings: str) -> None:
        monkeypatch.setattr(gssapi, "_library", lambda: ScriptedLibrary(context))
        rules = {"sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]/U"}
        self.server = Server(
            **{
                "listener.name.auth.sasl.enabled.mechanisms": "GSSAPI",
                "listener.name.auth.gssapi.sasl.jaas.config": f"{KRB5} required useKeyTab=true storeKey=true "
                'keyTab="/none" principal="kafka/host@EXAMPLE.COM";',
                "sasl.kerberos.service.name": "kafka",
                **rules,
                **settings,
            }
        )

    def exchange(self, *frames: bytes) -> list[bytes]:
        """The frames of the answers."""

        async def run() -> None:
            for frame in frames:
                self.server.send(frame)
                await asyncio.gather(*self.server.tasks)

        asyncio.run(run())
        data, answers = bytes(self.server.link.wire.data), []
        while data:
            (size,) = struct.unpack_from(">i", data)
            answers.append(data[4 : 4 + size])
            data = data[4 + size :]
        return answers


def wrapped(token: bytes) -> bytes:
    return encode_request(
        RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 5, "me"), SaslAuthenticateRequest(auth_bytes=token)
    )


HANDSHAKE = encode_request(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 5, "me"), SaslHandshakeRequest(mechanism="GSSAPI"))
HEARTBEAT = encode_request(RequestHeader(ApiKey.HEARTBEAT, 0, 5, "me"), HeartbeatRequest())
GSSAPI_TOKEN = b"\x60\x82 client token"


def test_a_client_of_kerberos_has_its_short_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kerberos = WithKerberos(monkeypatch, ScriptedContext([b"server token"]))
    answers = kerberos.exchange(
        HANDSHAKE, wrapped(GSSAPI_TOKEN), wrapped(b""), wrapped(sealed(CLIENT_CHOICE)), HEARTBEAT
    )
    assert len(answers) == 5
    last = decode_response(ApiKey.SASL_AUTHENTICATE, 2, answers[3])[1]
    assert isinstance(last, SaslAuthenticateResponse)
    assert (last.error_code, bytes(last.auth_bytes), last.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
    assert kerberos.server.link.connection.principal == "User:ALICE"
    kerberos.server.close()


def test_a_client_of_kafka_0_9_begins_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    kerberos = WithKerberos(monkeypatch, ScriptedContext([b"server token"]))
    answers = kerberos.exchange(GSSAPI_TOKEN, b"", sealed(CLIENT_CHOICE), HEARTBEAT)
    assert answers[:2] == [b"server token", sealed(SERVER_OFFER)]
    assert len(answers) == 3, "its last token has no answer"
    assert decode_response(ApiKey.HEARTBEAT, 0, answers[2])[1] == HeartbeatResponse()
    kerberos.server.close()


def test_a_refused_client_is_told_nothing_and_the_log_says_why_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kerberos = WithKerberos(monkeypatch, ScriptedContext([], refusal="no key of canary"))
    kerberos.exchange(HANDSHAKE, wrapped(GSSAPI_TOKEN))
    kerberos.server.advance(100)
    answer = kerberos.exchange()[-1]
    response = decode_response(ApiKey.SASL_AUTHENTICATE, 2, answer)[1]
    assert isinstance(response, SaslAuthenticateResponse)
    message = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
    assert (response.error_code, response.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert kerberos.server.link.transport.is_aborted
    assert caplog.text.count("canary") == 1
    assert f"({message}: no key of canary)" in caplog.text
    kerberos.server.close()


def test_an_invalid_bare_token_closes_the_connection_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kerberos = WithKerberos(monkeypatch, ScriptedContext([], refusal="no key"))
    assert kerberos.exchange(GSSAPI_TOKEN) == []
    assert kerberos.server.closed() == (CloseReason.INVALID_REQUEST, "no key, before authentication")
    assert kerberos.server.counts.failed_authentication == 0
    kerberos.server.close()


def test_a_name_that_no_rule_takes_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    rules = {"listener.name.auth.sasl.kerberos.principal.to.local.rules": "RULE:[2:$1]"}
    kerberos = WithKerberos(monkeypatch, ScriptedContext([b"server token"]), **rules)
    kerberos.exchange(HANDSHAKE, wrapped(GSSAPI_TOKEN), wrapped(b""), wrapped(sealed(CLIENT_CHOICE)))
    kerberos.server.advance(100)
    assert not kerberos.server.link.connection.is_authenticated
    assert caplog.text.count("No rules apply to alice@EXAMPLE.COM") == 1
    kerberos.server.close()


def test_a_failure_that_may_pass_closes_the_connection_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = ScriptedContext([], refusal="Request is a replay", is_transient=True)
    kerberos = WithKerberos(monkeypatch, refusing)
    assert len(kerberos.exchange(HANDSHAKE, wrapped(GSSAPI_TOKEN))) == 1
    assert kerberos.server.closed() == (CloseReason.INVALID_REQUEST, "Request is a replay, before authentication")
    counts = kerberos.server.counts
    assert (counts.successful_authentication, counts.failed_authentication) == (0, 0)
    kerberos.server.close()
