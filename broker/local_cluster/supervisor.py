"""Starts the metadata service and the brokers of a local cluster, watches them, and stops them in order.

The service runs in the process of the supervisor, each broker in one of its own. The brokers start at the same time;
they stop one after the other, so that each hands its leaderships over, and the service stops last. If one of them ends
by itself, the others are stopped, and the exit status is 1.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import odradek
from odradek.broker.local_cluster.broker_process import BrokerProcess
from odradek.broker.local_cluster.plan import (
    ClusterOptions,
    broker_command,
    broker_defaults,
    broker_ids,
    check_options,
    service_directory,
    service_port,
)
from odradek.broker.machine.log_setup import configure_logging
from odradek.broker.machine.startup_error import StartupError, drop_output, refuse
from odradek.broker.machine.stop_signal import stop_signal
from odradek.broker.zookeeper.server import ZooKeeperServer
from odradek.broker.zookeeper.service_settings import make_settings
from odradek.storage.config.config_def import ConfigError
from odradek.timer.clock import SystemClock

logger = logging.getLogger(__name__)

EXIT_FAILED: Final = 1

STOP_TIMEOUT_S: Final = 60.0
"""A broker that still runs after it is killed."""


def run(options: ClusterOptions) -> int:
    """Run a local cluster until a signal stops it or a part of it fails. Returns the exit status."""
    configure_logging(options.log_level, options.log_format)
    logging.getLogger().handlers[0].setStream(sys.stdout)  # type: ignore[attr-defined]
    try:
        check_options(options)
        defaults = broker_defaults(options)  # a file that cannot be read is refused before anything has started
        return asyncio.run(Supervisor(options, defaults).run())
    except (StartupError, ConfigError) as error:
        return refuse(error)


class Supervisor:
    """See the module."""

    def __init__(self, options: ClusterOptions, defaults: Mapping[str, str]) -> None:
        """`defaults`: settings of all brokers, which those of the command line override."""
        self._options = options
        self._defaults = defaults
        self._brokers: list[BrokerProcess] = []
        self._service: ZooKeeperServer | None = None

    async def run(self) -> int:
        """Start all, wait, stop all. Returns the exit status; raises StartupError if the service cannot start."""
        stop = stop_signal()
        service = self._service = await self._start_service()
        connect = f"127.0.0.1:{service.port}"
        for broker_id in broker_ids(self._options):
            command = broker_command(self._options, broker_id, connect, self._defaults)
            self._brokers.append(BrokerProcess(broker_id, command, _write_line))
        await asyncio.gather(*(broker.start() for broker in self._brokers))
        starting = asyncio.gather(*(broker.started for broker in self._brokers))
        ends: list[asyncio.Future[Any]] = [stop, service.failed, *(broker.ended for broker in self._brokers)]
        await asyncio.wait([starting, *ends], return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and all(starting.result()):
            self._announce(connect)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        status = self._status()
        await self._stop(service)
        return status

    async def _start_service(self) -> ZooKeeperServer:
        options = self._options
        fields: dict[str, object] = {
            "port": service_port(options),
            "directory": service_directory(options),
            "max_client_connections": 0,
        }
        service = ZooKeeperServer(make_settings(fields), SystemClock())
        await service.start()
        return service

    def _status(self) -> int:
        """0 after a signal; 1, with the reason in the log, when a part has ended by itself."""
        assert self._service is not None
        status = 0
        for broker in self._brokers:
            if broker.ended.done():
                how = broker.ended.result()
                reason = f"status {how}" if how >= 0 else f"signal {-how}"
                logger.critical("The broker %d has ended with %s; the cluster stops", broker.broker_id, reason)
                status = EXIT_FAILED
        if self._service.failed.done():
            logger.critical("The metadata service cannot go on: %s", self._service.failed.exception())
            status = EXIT_FAILED
        return status

    async def _stop(self, service: ZooKeeperServer) -> None:
        for broker in reversed(self._brokers):
            broker.terminate()
            await asyncio.wait({broker.ended}, timeout=STOP_TIMEOUT_S)
            if not broker.ended.done():
                logger.error("The broker %d does not stop; it is killed", broker.broker_id)
                broker.kill()
                await broker.ended
        await service.stop()
        logger.info("The cluster has stopped")

    def _announce(self, connect: str) -> None:
        """Print the banner; test kits wait for its first line."""
        addresses = ",".join(broker.address for broker in self._brokers)
        _write(
            f"Odradek {odradek.__version__}, a cluster of {len(self._brokers)} brokers on this machine\n"
            f"  bootstrap servers  {addresses}\n"
            f"  zookeeper          {connect}\n"
            f"  data in            {os.path.abspath(self._options.data)}\n"
        )
        _write("".join(f"{line}\n" for line in self._options.ready_lines))


def _write_line(line: str) -> None:
    _write(line + "\n")


def _write(text: str) -> None:
    """Print. The cluster goes on when nobody reads its output any more, as after `| head`, or when a disk is full."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()  # of log lines, too
    except OSError:
        pass  # the next lines may find space
