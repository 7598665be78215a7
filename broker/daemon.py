"""The broker process: event loop, signals, start, stop.

Kafka: Kafka.main.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
from functools import partial
from typing import TYPE_CHECKING, Final

import odradek
from odradek.broker.machine.startup_error import StartupError, announce, refuse
from odradek.broker.machine.stop_signal import stop_signal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.faults.fault_setup import FaultSetup
    from odradek.broker.server import KafkaServer

logger = logging.getLogger(__name__)

EXIT_FAILED: Final = 1

GC_THRESHOLDS: Final = (3_000, 1, 8_000)
"""The broker makes few reference cycles. Python's default, a collection every 700 objects, costs a tenth of the start
time. The middle generation is collected every 9,000 objects, which takes up to 2 ms: decoding a request that names many
partitions makes a million objects.
"""


def run(
    config: BrokerConfig, event_loop: str, ready_lines: Sequence[str] = (), faults: FaultSetup | None = None
) -> int:
    """Run a broker until a signal stops it or it fails. Returns the exit status."""
    from odradek.controller.znodes.registration import RegistrationRefused
    from odradek.storage.config.config_def import ConfigError
    from odradek.storage.disk.log_dir import LogDirError

    gc.set_threshold(*GC_THRESHOLDS)
    raise_descriptor_limit()
    try:
        with asyncio.Runner(loop_factory=_loop_factory(event_loop)) as runner:
            return runner.run(_serve(config, ready_lines, faults))
    except (StartupError, ConfigError, LogDirError, RegistrationRefused, OSError) as error:
        return refuse(error)


async def _serve(config: BrokerConfig, ready_lines: Sequence[str], faults: FaultSetup | None) -> int:
    from odradek.broker.server import KafkaServer

    gc.freeze()  # what the imports have made stays, and no collection need look at it
    gc.enable()
    stop = stop_signal()
    server = KafkaServer(config) if faults is None else KafkaServer(config, prepare=partial(_start_faults, faults))
    server.failed.add_done_callback(_retrieve_exception)
    starting = asyncio.ensure_future(server.start())
    await asyncio.wait({starting, stop}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
    if starting.cancelled():
        return 0
    starting.result()
    _announce(server, config, ready_lines)
    gc.freeze()  # no collection before it: clients are waiting, and a start leaves little garbage
    from odradek.broker.machine import allocator  # after the start, which must not wait for it

    allocator.set_thresholds()
    await asyncio.wait({stop, server.failed}, return_when=asyncio.FIRST_COMPLETED)
    failure = server.failed.exception() if server.failed.done() else None
    if failure is not None:
        logger.critical("The broker cannot go on: %s", failure)
    if faults is not None:
        await faults.close()
    await server.stop()
    return 0 if failure is None else EXIT_FAILED


async def _start_faults(faults: FaultSetup, server: KafkaServer) -> None:
    await faults.start(server.faults, server.timer)


def _retrieve_exception(future: asyncio.Future[None]) -> None:
    """Retrieve the exception: if the start fails first, asyncio would log that it was never retrieved."""
    if not future.cancelled():
        future.exception()


def _announce(server: KafkaServer, config: BrokerConfig, ready_lines: Sequence[str]) -> None:
    """Print the banner on stdout. Test kits wait for the server's log line "started", not for the banner."""
    addresses = ", ".join(str(address) for address in server.addresses)
    data = ", ".join(os.path.abspath(path) for path in config.log_dirs)
    announce(
        f"Odradek {odradek.__version__}, Kafka {config.odradek_as_version or '3.9'} protocol\n"
        f"  listening on  {addresses}\n"
        f"  data in       {data}\n"
        f"  node id       {server.broker_id}\n"
        f"  cluster id    {server.cluster_id}\n" + "".join(f"{line}\n" for line in ready_lines)
    )


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name != "asyncio":
        try:
            import uvloop
        except ImportError:
            if name == "uvloop":
                raise StartupError("--event-loop uvloop: uvloop is not installed") from None
        else:
            factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
            return factory
    return asyncio.new_event_loop


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard limit: connections and log files need descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # an unlimited hard limit is refused by some kernels
            logger.warning("The limit of open files stays at %d: %s", soft, error)
