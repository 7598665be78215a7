"""`odradek serve --faults FILE --faults-listener HOST:PORT`: faults of a broker that is no part of a test."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.broker.faults.http.http_api import HttpApi
from odradek.broker.faults.http.http_listener import HttpListener, loopback
from odradek.broker.faults.rules.yaml_file import read_rules

if TYPE_CHECKING:
    from odradek.broker.faults.faults import Faults
    from odradek.timer.system_timer import SystemTimer

logger = logging.getLogger(__name__)


class FaultSetup:
    """What the command line says about faults."""

    def __init__(self, file: str | None, listener: str | None) -> None:
        """Read the file. Raises: StartupError."""
        self._file = file
        self._rules = [] if file is None else read_rules(file)
        self._address = None if listener is None else loopback(listener)
        self._listener: HttpListener | None = None

    async def start(self, faults: Faults, timer: SystemTimer) -> None:
        """Put the rules in force, and listen. Raises: StartupError."""
        logger.warning("FAULTS ARE ON: this broker fails on purpose. It is for tests only.")
        faults.add_all(self._rules)
        if self._file is not None:
            logger.warning("%d faults of %s are in force", len(self._rules), self._file)
        if self._address is not None:
            self._listener = HttpListener(HttpApi(faults), timer)
            url = await self._listener.start(*self._address)
            logger.warning("Faults can be added, without authentication, at %s", url)

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
