"""The signals that stop a process in order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Final

logger = logging.getLogger(__name__)

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def stop_signal() -> asyncio.Future[None]:
    """A future that the first signal completes. A second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def received(number: signal.Signals) -> None:
        if stop.done():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        logger.info("Terminating process due to signal %s", number.name)
        stop.set_result(None)

    for number in STOP_SIGNALS:
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue  # as in a JVM: `nohup` ignores SIGHUP so that the broker outlives the terminal
        loop.add_signal_handler(number, received, number)
    return stop
