from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from odradek.broker.security.sasl.kerberos import gssapi
from odradek.broker.security.sasl.kerberos.exchanges import CLIENT_CHOICE, SERVER_OFFER
from odradek.broker.security.sasl.kerberos.krb5_login import LOGIN_MODULE
from odradek.broker.security.sasl.ports import SaslContext, SaslError
from odradek.storage.config.config_def import ConfigError
from tests.support.async_test import async_test
from tests.support.in_process.connections.network import LaterIoPool
from tests.support.in_process.security.sasl_contexts import context, slots
from tests.support.in_process.security.scripted_contexts import ScriptedContext, ScriptedLibrary, sealed

JAAS = f'{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="/k" principal="kafka/h" serviceName=kafka;'


def of(jaas: str = JAAS) -> SaslContext:
    return context("GSSAPI", jaas)


@pytest.fixture
def with_library(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedContext], ScriptedLibrary]:
    def use(scripted: ScriptedContext) -> ScriptedLibrary:
        library = ScriptedLibrary(scripted)
        monkeypatch.setattr(gssapi, "_library", lambda: library)
        return library

    return use


@pytest.mark.parametrize("load", [gssapi.load_server, gssapi.make_client])
def test_without_the_package_it_says_what_to_install(
    load: Callable[[SaslContext], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "odradek.broker.security.sasl.kerberos.security_contexts", raising=False)
    with pytest.raises(ConfigError) as refusal:
        load(of())
    for part in ("pip install 'odradek[gssapi]'", "C compiler", "libkrb5-dev"):
        assert part in str(refusal.value)


def test_a_class_of_the_operator_has_nothing_to_check() -> None:
    with pytest.raises(ConfigError, match="handler"):
        gssapi.load_server(of()._replace(handler_class="a:B"))


@async_test
async def test_a_client_is_authenticated(
    with_library: Callable[[ScriptedContext], ScriptedLibrary], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    library = with_library(ScriptedContext([b"welcome"]))
    server = gssapi.load_server(of()._replace(handler_slots=slots()))()
    assert [login.principal for login, _ in library.asked] == ["kafka/h"], "the keytab is looked at when it is loaded"

    async def send(token: bytes) -> bytes | None:
        return await cast("Awaitable[bytes | None]", server.evaluate_response(token))

    assert await send(b"hello") == b"welcome"
    assert await send(b"") == sealed(SERVER_OFFER)
    assert not server.is_complete
    assert await send(sealed(CLIENT_CHOICE + b"a" * 1000)) is None
    assert server.is_complete
    assert server.authorization_id == "alice@EXAMPLE.COM"
    assert server.session_expiry_ms is None, "as in Apache Kafka, the end of the ticket ends no session"
    assert not server.is_token_authenticated
    assert "authenticationID=alice@EXAMPLE.COM; authorizationID='aaa" in caplog.text
    assert "a" * 301 not in caplog.text


@async_test
async def test_a_step_runs_in_the_pool(with_library: Callable[[ScriptedContext], ScriptedLibrary]) -> None:
    with_library(ScriptedContext([], refusal="no key"))
    pool = LaterIoPool()
    server = gssapi.load_server(of()._replace(io_pool=pool, handler_slots=slots()))()
    step = cast("Awaitable[bytes | None]", server.evaluate_response(b"hello")).__await__()
    waiting = step.send(None)
    assert not waiting.done()
    pool.run()
    assert waiting.done()
    with pytest.raises(SaslError, match="no key"):
        step.send(None)


def test_a_client_asks_for_the_service_of_the_host(
    with_library: Callable[[ScriptedContext], ScriptedLibrary],
) -> None:
    library = with_library(ScriptedContext([b"hello"], is_client=True))
    client = gssapi.make_client(of()._replace(server_host="broker.example.com"))
    assert not library.asked, "the KDC is asked when a thread evaluates the first challenge"
    assert client.evaluate_challenge(b"") == b"hello"
    assert [(login.service_name, host) for login, host in library.asked] == [("kafka", "broker.example.com")]
