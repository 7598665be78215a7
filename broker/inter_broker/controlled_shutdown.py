"""Controlled shutdown: before it stops, a broker asks the controller to move its leaderships to other brokers.

It sends the request up to `controlled.shutdown.max.retries` times, `controlled.shutdown.retry.backoff.ms` apart. It
tries again without a controller, without an answer, after an error, and when partitions remain that no other broker can
lead. After the last attempt the broker stops in any case.

Kafka: KafkaServer.controlledShutdown.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.broker.machine.timed_waits import pause
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.inter_broker.broker_links import BrokerLinks
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.timer.system_timer import SystemTimer

log = logging.getLogger(__name__)

CONTROLLED_SHUTDOWN_VERSION: Final = 3


class ControlledShutdown:
    """`links` are those of the inter-broker listener."""

    def __init__(
        self,
        config: BrokerConfig,
        links: BrokerLinks,
        cache: MetadataCache,
        timer: SystemTimer,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._config = config
        self._links = links
        self._cache = cache
        self._timer = timer
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller_id: int | None = None

    async def run(self) -> bool:
        """True if all leaderships were moved that another broker can take."""
        log.info("Starting controlled shutdown")
        left = self._config.controlled_shutdown_max_retries
        while left > 0:
            left -= 1
            if await self._ask():
                return True
            if left:
                await pause(self._timer, self._config.controlled_shutdown_retry_backoff_ms)
                log.info("Retrying controlled shutdown (%d retries remaining)", left)
        log.warning("Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed")
        return False

    async def _ask(self) -> bool:
        self._controller_id = self._find_controller()
        if self._controller_id is None:
            return False
        request = ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        try:
            answer = await self._links.link(self._controller_id).exchange(
                request,
                ControlledShutdownResponse,
                version=CONTROLLED_SHUTDOWN_VERSION,
                timeout_ms=self._config.request_timeout_ms,
            )
        except OSError as error:
            log.warning("Error during controlled shutdown: %s", error)
            return False
        if answer.error_code != ErrorCode.NONE:
            log.info("Controlled shutdown request returned with error %s", ErrorCode.for_code(answer.error_code).name)
            return False
        if answer.remaining_partitions:
            log.info("Controlled shutdown: %d partitions remaining to move", len(answer.remaining_partitions))
            return False
        log.info("Controlled shutdown request returned successfully")
        return True

    def _find_controller(self) -> int | None:
        found = self._cache.snapshot.controller_id
        if found is None:
            log.info("No controller present in the metadata cache")
        elif not self._cache.is_alive(found):
            log.info("Broker registration for controller %d is not available in the metadata cache", found)
        else:
            return found
        return self._controller_id  # the controller of the last attempt, or None
