"""Removes expired tokens every `delegation.token.expiry.check.interval.ms` while the broker is the controller.

Kafka: KafkaController.onControllerFailover.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.controller.tree.metadata_tree import TreeError
from odradek.timer.periodic import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.broker.security.tokens.token_manager import DelegationTokenManager
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)


class TokenExpiry:
    """Implements `controller.WhileActive`. The first round comes at once."""

    def __init__(
        self,
        manager: DelegationTokenManager,
        timer: SystemTimer,
        interval_ms: int,
        in_background: Callable[[Coroutine[object, object, None]], None],
    ) -> None:
        self._manager = manager
        self._timer = timer
        self._interval_ms = interval_ms
        self._in_background = in_background
        self._task: PeriodicTask | None = None

    def start(self) -> None:
        logger.info("starting the token expiry check scheduler")
        self._task = PeriodicTask(self._timer, "delete-expired-tokens", self._interval_ms, self._round)
        self._task.start(initial_delay_ms=0)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _round(self) -> None:
        self._in_background(self._expire_tokens())

    async def _expire_tokens(self) -> None:
        try:
            await self._manager.expire_tokens()
        except TreeError as error:
            logger.error("Cannot remove expired delegation tokens; the next round tries again: %r", error)
