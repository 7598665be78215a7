"""Switches the request log on and off when the level of a logger changes.

While no level enables it, `request_log` is not imported and requests are not observed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from odradek.storage.config.log_config import TOPIC_CONFIGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.machine.logger_levels import LoggerLevels
    from odradek.broker.network.requests.request import RequestObserver
    from odradek.timer.clock import Clock


class Observed(Protocol):
    """What has requests to observe. Implemented by `Dispatcher`."""

    def observe(self, observer: RequestObserver) -> None: ...

    def stop_observing(self, observer: RequestObserver) -> None: ...


def secrets_of(config: BrokerConfig) -> Callable[[str], bool]:
    """Whether the value of a broker's or topic's config, given its name, must not be logged."""
    return lambda name: config.is_sensitive(name) and name not in TOPIC_CONFIGS


class RequestLogSwitch:
    """Follows the levels from its making on."""

    __slots__ = ("_clock", "_is_secret", "_levels", "_observed", "_observer")

    def __init__(
        self, observed: Observed, levels: LoggerLevels, clock: Clock, is_secret: Callable[[str], bool]
    ) -> None:
        self._observed = observed
        self._levels = levels
        self._clock = clock
        self._is_secret = is_secret
        self._observer: RequestObserver | None = None
        levels.on_change = self.apply
        self.apply()

    def apply(self) -> None:
        """Begin or end to observe."""
        is_wanted = self._levels.lowest_request_level() <= logging.INFO
        if is_wanted and self._observer is None:
            from odradek.broker.network.requests.request_log import RequestLog

            self._observer = RequestLog(self._levels, self._clock, self._is_secret)
            self._observed.observe(self._observer)
        elif not is_wanted and self._observer is not None:
            self._observed.stop_observing(self._observer)
            self._observer = None
