"""Sends requests to the controller, which the metadata cache names; each attempt reads the cache again.

One request is sent at a time. It is sent again after `RETRY_BACKOFF_MS`, before later ones, when the connection fails
or when any error code of the answer is NOT_CONTROLLER.

Kafka: NodeToControllerChannelManagerImpl, NodeToControllerRequestThread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.broker.machine.timed_waits import pause
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.inter_broker.broker_links import BrokerLinks
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.protocol.codec.schema import Request
    from odradek.timer.clock import Clock
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS: Final = 100

ResponseT = TypeVar("ResponseT", bound=Response)


class NodeToControllerChannelManager:
    """Implements `ports.ToController`. `request_timeout_ms` limits one attempt."""

    def __init__(
        self, links: BrokerLinks, cache: MetadataCache, clock: Clock, timer: SystemTimer, request_timeout_ms: int
    ) -> None:
        self._links = links
        self._cache = cache
        self._clock = clock
        self._timer = timer
        self._request_timeout_ms = request_timeout_ms
        self._turn = asyncio.Lock()  # requests are sent in the order of their calls

    async def ask(
        self, request: Request, response_type: type[ResponseT], *, timeout_ms: int | None, version: int | None = None
    ) -> ResponseT:
        asked_ms = self._clock.monotonic_ms()
        attempt_ms = self._request_timeout_ms if timeout_ms is None else min(timeout_ms, self._request_timeout_ms)
        async with self._turn:
            while timeout_ms is None or self._clock.monotonic_ms() - asked_ms < timeout_ms:
                response = await self._try(request, response_type, attempt_ms, version)
                if response is not None:
                    return response
                await pause(self._timer, RETRY_BACKOFF_MS)
        raise TimeoutError(f"{type(request).__name__} found no controller within {timeout_ms} ms")

    def close(self) -> None:
        self._links.close()

    async def _try(
        self, request: Request, response_type: type[ResponseT], timeout_ms: int, version: int | None
    ) -> ResponseT | None:
        controller_id = self._cache.snapshot.controller_id
        if controller_id is None:
            return None
        try:
            link = self._links.link(controller_id)
            response = await link.exchange(request, response_type, version=version, timeout_ms=timeout_ms)
        except OSError as error:
            logger.info("%s to controller %d failed: %s", type(request).__name__, controller_id, error)
            return None
        if ErrorCode.NOT_CONTROLLER in error_codes(response):
            logger.debug("%s: broker %d is not the controller", type(request).__name__, controller_id)
            self._links.close_link(controller_id)
            return None
        return response
