from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

import pytest

from odradek.broker.machine.io_pool import HANDLER_CALLS_MAX, ThreadIoPool
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.security.sasl import plain, scram
from odradek.broker.security.sasl.callback_handlers import (
    HandlerMethod,
    PlainCallbackHandler,
    ScramCallbackHandler,
    load_method,
)
from odradek.broker.security.sasl.ports import HandlerFailed, SaslAuthenticationError, SaslContext, SaslError
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import ScramMechanism
from odradek.storage.disk.ports import IoPool
from tests.support.async_test import async_test
from tests.support.in_process.security.sasl_contexts import Tokens, context, slots

T = TypeVar("T")
TIMEOUT_S = 30
MECHANISM = ScramMechanism.SCRAM_SHA_256
SALTED = MECHANISM.salted_password(b"secret", b"salt", 4096)
CREDENTIAL = MECHANISM.credential(b"salt", SALTED, 4096)


class Known(PlainCallbackHandler):
    """Knows the users in its JAAS options."""

    events: ClassVar[list[str]] = []

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str]) -> None:
        self.events.append(f"configured {mechanism} {configs['my.key']}")
        self.users = jaas_options

    def verify(self, user: str, password: str) -> bool:
        if user == "broken":
            raise ValueError(password)
        return self.users[user] == password

    def close(self) -> None:
        self.events.append("closed")


class KnownLater(Known):
    async def verify(self, user: str, password: str) -> bool:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().verify(user, password)


class Truthy(Known):
    def verify(self, user: str, password: str) -> bool:
        return "yes"  # type: ignore[return-value]


class Stored(ScramCallbackHandler):
    """Knows alice."""

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str]) -> None: ...

    async def credential(self, user: str) -> ScramCredential | None:
        if user == "broken":
            raise LookupError("canary")
        return {"alice": CREDENTIAL, "strange": "text"}.get(user)  # type: ignore[return-value]


def handled(mechanism: str, jaas: str, handler: type[object], closed: list[Callable[[], None]]) -> SaslContext:
    return context(mechanism, jaas)._replace(
        handler_slots=slots(),
        handler_class=f"{__name__}:{handler.__name__}",
        configs={"my.key": "x"},
        when_closed=closed.append,
    )


def plain_context(handler: type[object], closed: list[Callable[[], None]] | None = None) -> SaslContext:
    return handled("PLAIN", f'{plain.LOGIN_MODULE} required alice="secret";', handler, closed or [])


def scram_context() -> SaslContext:
    return handled("SCRAM-SHA-256", f"{scram.LOGIN_MODULE} required;", Stored, [])


async def login(context: SaslContext, token: bytes) -> str:
    """The name of the user."""
    server = plain.load_server(context)()
    answer = server.evaluate_response(token)
    assert not isinstance(answer, bytes)
    assert not server.is_complete
    assert await answer == b""
    assert server.is_complete
    return server.authorization_id


@pytest.mark.parametrize("handler", [Known, KnownLater])
@async_test
async def test_a_class_checks_the_passwords_of_plain(handler: type[object]) -> None:
    Known.events.clear()
    closed: list[Callable[[], None]] = [lambda: None]
    one = plain_context(handler, closed)
    assert await login(one, b"\0alice\0secret") == "alice"
    with pytest.raises(SaslAuthenticationError, match="Authentication failed: Invalid username or password"):
        await login(one, b"\0alice\0wrong")
    with pytest.raises(SaslAuthenticationError, match="authorization id that is different from username"):
        await login(one, b"bob\0alice\0secret")
    closed[1]()
    assert Known.events == ["configured PLAIN x"] * 3 + ["closed"]


@pytest.mark.parametrize("user", ["broken", "nobody"])
@async_test
async def test_a_class_that_raises_lets_nobody_in_and_tells_no_secret(
    user: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SaslAuthenticationError, match="credentials for user could not be verified"):
        await login(plain_context(Known), f"\0{user}\0canary".encode())
    assert f"in {__file__}, line" in caplog.text
    assert "canary" not in caplog.text


@async_test
async def test_only_true_is_true() -> None:
    with pytest.raises(SaslAuthenticationError, match="Invalid username or password"):
        await login(plain_context(Truthy), b"\0alice\0secret")


@async_test
async def test_a_class_has_the_credentials_of_scram() -> None:
    server = scram.load_server(scram_context())()
    client = scram.ScramSaslClient(MECHANISM, "alice", "secret", "nonce")
    challenge = b""
    while (token := client.evaluate_challenge(challenge)) is not None:
        answer = server.evaluate_response(token)
        challenge = answer if isinstance(answer, bytes) else await answer
    assert (server.is_complete, server.authorization_id) == (True, "alice")


@async_test
async def test_an_unknown_user_of_scram_is_refused_at_the_end() -> None:
    server = scram.load_server(scram_context())()
    client = scram.ScramSaslClient(MECHANISM, "nobody", "secret", "nonce")
    answer = server.evaluate_response(client.evaluate_challenge(b"") or b"")
    assert not isinstance(answer, bytes)
    final = client.evaluate_challenge(await answer)
    with pytest.raises(SaslError, match="Invalid client credentials"):
        server.evaluate_response(final or b"")


@pytest.mark.parametrize(
    ("user", "reason"), [("broken", "Credentials could not be obtained"), ("strange", "returned no ScramCredential")]
)
@async_test
async def test_a_class_of_scram_that_fails_lets_nobody_in(user: str, reason: str) -> None:
    server = scram.load_server(scram_context())()
    answer = server.evaluate_response(f"n,,n={user},r=nonce".encode())
    assert not isinstance(answer, bytes)
    with pytest.raises(SaslError, match=reason):
        await answer


@async_test
async def test_delegation_tokens_are_not_asked_of_the_class() -> None:
    server = scram.load_server(scram_context()._replace(tokens=Tokens(token=CREDENTIAL)))()
    assert isinstance(server.evaluate_response(b"n,,n=token,r=nonce,tokenauth=true"), bytes)


def test_a_class_without_the_method_refuses_the_start() -> None:
    with pytest.raises(StartupError, match="the class has no method credential"):
        load_method(plain_context(Known), ScramCallbackHandler, "credential")


class Blocking(Known):
    """Waits in its thread until it may go on."""

    proceed = threading.Event()
    begun = threading.Semaphore(0)
    under_way = 0
    most = 0

    def verify(self, user: str, password: str) -> bool:
        Blocking.under_way += 1
        Blocking.most = max(Blocking.most, Blocking.under_way)
        self.begun.release()
        self.proceed.wait()
        Blocking.under_way -= 1
        return True


@async_test
async def test_some_threads_stay_free_for_the_disk() -> None:
    pool = ThreadIoPool(asyncio.get_running_loop())
    methods: list[HandlerMethod[bool]] = []
    shared = slots()
    for _ in range(2):
        one = plain_context(Blocking)._replace(io_pool=pool, handler_slots=shared)
        methods.append(load_method(one, PlainCallbackHandler, "verify"))
    calls = [asyncio.ensure_future(method("u", "p")) for method in methods * 5]
    assert await in_pool(pool, lambda: "read") == "read"
    for _ in range(HANDLER_CALLS_MAX):
        assert await in_pool(pool, lambda: Blocking.begun.acquire(timeout=TIMEOUT_S))
    Blocking.proceed.set()
    assert await asyncio.gather(*calls) == [True] * 10
    assert Blocking.most == HANDLER_CALLS_MAX
    pool.close()


@async_test
async def test_an_os_error_of_the_class_is_one_of_the_class() -> None:
    class Unreachable(Known):
        def verify(self, user: str, password: str) -> bool:
            raise ConnectionRefusedError("canary")

    one = plain_context(Known)
    method: HandlerMethod[bool] = HandlerMethod(Unreachable().verify, one.io_pool, slots())
    with pytest.raises(HandlerFailed, match="raised ConnectionRefusedError in"):
        await method("alice", "secret")


async def in_pool(pool: IoPool, work: Callable[[], T]) -> T:
    result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    pool.submit(work, lambda value: None if isinstance(value, OSError) else result.set_result(value))
    return await result
