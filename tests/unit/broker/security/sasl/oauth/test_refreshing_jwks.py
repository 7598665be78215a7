from __future__ import annotations

import asyncio

import pytest

from odradek.broker.security.sasl.oauth.refreshing_jwks import (
    MISSING_KEY_ID_LENGTH_MAX,
    MISSING_KEY_ID_MS,
    MISSING_KEY_IDS_MAX,
    NO_WAIT_MS,
    RefreshingJwks,
    RefreshTimes,
)
from odradek.storage.config.config_def import ConfigError
from odradek.timer.clock import ManualClock
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool
from tests.support.jwt import ed_jwk, jwks

TIMES = RefreshTimes(refresh_ms=3_600_000, retry_backoff_ms=100, retry_backoff_max_ms=300)


class Server:
    """The keys that an HTTP server would send, or its error."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = jwks(ed_jwk(kid="1"))
        self.asked = 0
        self.pool = DeferredIoPool()
        self.clock = ManualClock()
        self.keys = RefreshingJwks("http://idp/jwks", self.fetch, self.pool, self.clock.monotonic_ms, TIMES)

    def fetch(self) -> bytes:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def has(self, key_id: str) -> bool:
        return self.keys.find_key(key_id, "EdDSA") is not None

    def run(self) -> int:
        while self.pool.pending:
            self.pool.run_one()
        return self.asked

    def after(self, ms: int) -> int:
        """How often the server was asked, when a token comes after so long."""
        self.clock.advance(ms)
        self.keys.maybe_refresh()
        return self.run()


def test_keys_are_fetched_once_until_they_are_old() -> None:
    server = Server()
    server.keys.maybe_refresh()
    server.keys.maybe_refresh()
    assert not server.has("1")
    assert server.run() == 1
    assert server.has("1")
    assert server.after(TIMES.refresh_ms - 1) == 1
    server.answer = jwks(ed_jwk(kid="2"))
    assert server.after(1) == 2
    assert (server.has("1"), server.has("2")) == (False, True)


@pytest.mark.parametrize(
    "answer", [OSError("refused"), ConfigError("no trust store"), KeyError("a bug"), b"junk", b"{}"]
)
def test_a_failed_fetch_keeps_the_keys_and_is_repeated_after_a_growing_backoff(
    answer: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    assert server.after(0) == 1
    server.answer = answer
    assert server.after(TIMES.refresh_ms) == 2
    assert server.has("1")
    assert "not updating local JWKS cache" in caplog.text
    for asked, backoff_ms in ((2, 100), (3, 200), (4, 300), (5, 300)):
        assert server.after(backoff_ms - 1) == asked
        assert server.after(1) == asked + 1
    server.answer = jwks(ed_jwk(kid="2"))
    assert server.after(300) == 7
    assert server.has("2")
    assert server.after(300) == 7


def test_an_unknown_key_id_fetches_the_keys_once_a_minute() -> None:
    server = Server()
    server.after(0)
    assert not server.has("2")
    assert not server.has("2")
    assert server.run() == 2
    server.clock.advance(MISSING_KEY_ID_MS - 1)
    assert not server.has("2")
    assert server.run() == 2
    server.clock.advance(1)
    assert not server.has("2")
    assert server.run() == 3


def test_made_up_key_ids_take_little_memory_and_no_fetch_while_the_server_fails() -> None:
    server = Server()
    server.after(0)
    server.has("x" * (MISSING_KEY_ID_LENGTH_MAX + 1))
    server.keys.find_key(None, "RS256")
    assert server.run() == 1
    for number in range(3 * MISSING_KEY_IDS_MAX):
        server.has(f"made-up-{number}")
        server.run()
    assert len(server.keys._missing_key_ids) == MISSING_KEY_IDS_MAX
    server.answer = OSError("down")
    asked = server.after(TIMES.refresh_ms)
    for number in range(10):
        server.has(f"more-{number}")
        assert server.run() == asked


@async_test
async def test_the_first_tokens_wait_for_the_first_keys() -> None:
    server = Server()
    waiting = [server.keys.wait(), server.keys.wait()]
    assert None not in waiting
    server.answer = OSError("down")
    server.run()
    await asyncio.gather(*(each for each in waiting if each is not None))
    assert server.keys.wait() is None  # the backoff: tokens are refused meanwhile
    server.answer = jwks(ed_jwk(kid="1"))
    server.clock.advance(TIMES.retry_backoff_ms)
    again = server.keys.wait()
    assert again is not None
    server.run()
    await again
    assert server.has("1")
    assert server.keys.wait() is None


@async_test
async def test_tokens_wait_for_new_keys_when_the_keys_are_old() -> None:
    server = Server()
    server.after(0)
    server.clock.advance(TIMES.refresh_ms - 1)
    assert server.keys.wait() is None
    server.clock.advance(1)
    server.answer = jwks(ed_jwk(kid="2"))
    waiting = [server.keys.wait(), server.keys.wait()]
    server.run()
    await asyncio.gather(*(each for each in waiting if each is not None))
    assert None not in waiting
    assert (server.has("1"), server.has("2")) == (False, True)


@async_test
async def test_tokens_do_not_wait_for_a_server_that_has_just_failed() -> None:
    server = Server()
    server.after(0)
    server.answer = OSError("down")
    server.clock.advance(TIMES.refresh_ms)
    waiting = server.keys.wait()
    assert waiting is not None
    server.run()
    await waiting
    server.clock.advance(TIMES.retry_backoff_ms)
    assert server.keys.wait() is None
    assert len(server.pool.pending) == 1, "the repetition"
    assert server.has("1")
    server.run()
    server.clock.advance(NO_WAIT_MS - 1)
    assert server.keys.wait() is None
    server.answer = jwks(ed_jwk(kid="2"))
    server.run()
    assert server.has("2")


@async_test
async def test_tokens_wait_for_a_server_that_failed_long_ago() -> None:
    """In the evening, for example: at night there is no token, and so no repetition."""
    server = Server()
    server.after(0)
    server.answer = OSError("down")
    server.after(TIMES.refresh_ms)
    server.answer = jwks(ed_jwk(kid="2"))
    server.clock.advance(NO_WAIT_MS)
    waiting = server.keys.wait()
    assert waiting is not None
    server.run()
    await waiting
    assert server.has("2")


@async_test
async def test_tokens_do_not_wait_for_a_key_that_another_token_names() -> None:
    server = Server()
    server.after(0)
    assert not server.has("made-up")
    assert server.keys.wait() is None
    assert len(server.pool.pending) == 1
