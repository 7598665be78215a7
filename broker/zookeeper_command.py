"""`odradek zookeeper`: a metadata service for clusters on one machine, until SIGTERM or SIGINT stops it.

One node: for development and tests. A production cluster uses an ensemble of Apache ZooKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import odradek
from odradek.broker.machine.log_setup import configure_logging
from odradek.broker.machine.startup_error import StartupError, announce, refuse
from odradek.broker.machine.stop_signal import stop_signal
from odradek.broker.zookeeper.server import ZooKeeperServer
from odradek.broker.zookeeper.service_settings import make_settings, read_zoo_cfg
from odradek.timer.clock import SystemClock

if TYPE_CHECKING:
    from odradek.broker.zookeeper.service_settings import ServiceSettings

logger = logging.getLogger(__name__)

EXIT_FAILED = 1


def main(config: str | None, given: dict[str, object], log_level: str) -> int:
    """Run the service. `given`: fields of ServiceSettings that the command line sets. Returns the exit status."""
    configure_logging(log_level)
    try:
        return asyncio.run(_serve(read_settings(config, given)))
    except StartupError as error:
        return refuse(error)


def read_settings(config: str | None, given: dict[str, object]) -> ServiceSettings:
    """The settings of a zoo.cfg, if there is one, below those of the command line. Raises StartupError."""
    fields: dict[str, object] = {}
    if config is not None:
        try:
            with open(config, encoding="utf-8") as file:
                fields, ignored = read_zoo_cfg(file)
        except (OSError, UnicodeDecodeError) as error:
            raise StartupError(f"cannot read {config}: {error}") from error
        for key in ignored:
            logger.warning("%s: the key %s has no effect in this service", config, key)
    return make_settings({**fields, **given})


async def _serve(settings: ServiceSettings) -> int:
    stop = stop_signal()
    server = ZooKeeperServer(settings, SystemClock())
    await server.start()
    _announce(server)
    logger.info("[ZooKeeperServer] started, binding to port %s:%d", settings.host, server.port)
    await asyncio.wait({stop, server.failed}, return_when=asyncio.FIRST_COMPLETED)
    failure = server.failed.exception() if server.failed.done() else None
    await server.stop()
    logger.info("[ZooKeeperServer] shut down")
    return 0 if failure is None else EXIT_FAILED


def _announce(server: ZooKeeperServer) -> None:
    settings = server.settings
    announce(
        f"Odradek {odradek.__version__}, metadata service with ZooKeeper's protocol\n"
        f"  listening on  {settings.host}:{server.port}\n"
        f"  data in       {settings.directory}\n"
        "  one node, for development and tests; a production cluster uses an ensemble of Apache ZooKeeper\n"
    )
