"""The keys of an HTTP server, fetched in the I/O pool while the broker goes on with those that it has.

They are fetched at the start, again for the first token that comes when they are older than the refresh time, and when
a token has an unknown key id (each id once a minute). A token waits for the keys if there are none yet, or if they are
older than the refresh time: else the first tokens after a quiet night would be checked with keys that may have been
withdrawn. A failed fetch leaves the keys as they are and is repeated after a backoff; no token waits for a server that
has failed a short time ago. Until the first fetch succeeds every token is refused.

Kafka: RefreshingHttpsJwks, RefreshingHttpsJwksVerificationKeyResolver.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.security.sasl.oauth.jwks import JsonWebKey, parse_jwks, select
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.security.sasl.oauth.access_token import Json
    from odradek.storage.disk.ports import IoPool

logger = logging.getLogger(__name__)

MISSING_KEY_IDS_MAX: Final = 16
MISSING_KEY_ID_MS: Final = 60_000
MISSING_KEY_ID_LENGTH_MAX: Final = 1000

NO_WAIT_MS: Final = 60_000
"""After a failed fetch, no token waits for so long for another one, if there are keys."""


class RefreshTimes(NamedTuple):
    """The keys `sasl.oauthbearer.jwks.endpoint.*` of these names."""

    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


class RefreshingJwks:
    """`fetch` gets the JWKS and may block. `now_ms`: monotonic time."""

    def __init__(
        self,
        location: str,
        fetch: Callable[[], bytes],
        io_pool: IoPool,
        now_ms: Callable[[], int],
        times: RefreshTimes,
    ) -> None:
        self._location = location
        self._fetch = fetch
        self._io_pool = io_pool
        self._now_ms = now_ms
        self._times = times
        self._keys: list[JsonWebKey] | None = None
        self._next_refresh_ms = self._stale_ms = now_ms()
        self._failures = 0
        self._no_wait_before_ms = self._next_refresh_ms
        self._is_refreshing = False
        self._waiting: list[asyncio.Future[None]] = []
        self._missing_key_ids: dict[str, int] = {}
        """When each may cause the next refresh."""

    def maybe_refresh(self) -> None:
        """Begin a refresh if it is time for one."""
        if not self._is_refreshing and self._now_ms() >= self._next_refresh_ms:
            self._is_refreshing = True
            logger.info("OAuth JWKS refresh of %s starting", self._location)
            self._io_pool.submit(self._fetched, self._refreshed)

    def wait(self) -> Awaitable[None] | None:
        """The end of the fetch under way, if there are no keys yet, or if they are too old."""
        self.maybe_refresh()
        is_fresh = self._now_ms() < max(self._stale_ms, self._no_wait_before_ms)
        if not self._is_refreshing or (self._keys is not None and is_fresh):
            return None
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def find_key(self, key_id: Json, algorithm: str) -> JsonWebKey | None:
        """The key of a token; an unknown key id begins a refresh."""
        key = select(self._keys or (), key_id, algorithm)
        if key is None and isinstance(key_id, str):
            self._maybe_expedite_refresh(key_id)
        return key

    def _maybe_expedite_refresh(self, key_id: str) -> None:
        missing, now_ms = self._missing_key_ids, self._now_ms()
        if len(key_id) > MISSING_KEY_ID_LENGTH_MAX or missing.get(key_id, now_ms) > now_ms or self._failures:
            return
        missing.pop(key_id, None)
        missing[key_id] = now_ms + MISSING_KEY_ID_MS
        if len(missing) > MISSING_KEY_IDS_MAX:
            del missing[next(iter(missing))]
        self._next_refresh_ms = now_ms
        self.maybe_refresh()

    def _fetched(self) -> list[JsonWebKey] | Exception:
        """In a thread of the I/O pool. A refresh without an end would keep every client waiting."""
        try:
            return parse_jwks(self._fetch())
        except Exception as error:  # noqa: BLE001 - `_refreshed` logs it
            return error

    def _refreshed(self, result: list[JsonWebKey] | Exception) -> None:
        self._is_refreshing = False
        times, now_ms = self._times, self._now_ms()
        if isinstance(result, list):
            self._keys = result
            self._failures = 0
            self._next_refresh_ms = self._stale_ms = now_ms + times.refresh_ms
            logger.info("OAuth JWKS refresh of %s complete: %d keys", self._location, len(result))
        else:
            backoff_ms = min(times.retry_backoff_max_ms, times.retry_backoff_ms << min(self._failures, 30))
            self._failures += 1
            self._no_wait_before_ms = now_ms + NO_WAIT_MS
            self._next_refresh_ms = now_ms + backoff_ms
            logger.warning(
                "OAuth JWKS refresh of %s encountered an error; not updating local JWKS cache: %s",
                self._location,
                result,
                exc_info=None if isinstance(result, (OSError, ValueError, ConfigError)) else result,
            )
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)
