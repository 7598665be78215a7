"""What each broker of a local cluster is started with: id, port, directories and settings, derived from one command.

--port 9092 --data DIR --brokers 3
    metadata service    port 9091, DIR/zookeeper
    broker 0            port 9092, DIR/broker-0
    broker 1            port 9093, DIR/broker-1
    broker 2            port 9094, DIR/broker-2
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from odradek.broker.config.config_sources import gather_settings
from odradek.broker.machine.end_with_parent import end_with_parent
from odradek.broker.machine.startup_error import StartupError
from odradek.controller.model.broker_info import format_address

BROKERS_MAX: Final = 100

DERIVED: Final = ("broker.id", "listeners", "log.dirs", "log.dir", "zookeeper.connect", "advertised.listeners")
"""Configs that differ from broker to broker, so they cannot be given for all."""

_PROGRAM: Final = f"""\
from {end_with_parent.__module__} import {end_with_parent.__name__} as prepare
prepare()
from odradek.broker.cli import main
raise SystemExit(main())
"""
"""`odradek`, in a process that stops when the supervisor has ended."""

_REPLICAS_DEFAULT: Final = 3
_MIN_ISR_DEFAULT: Final = 2
_PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The command line. `port` 0: free ports for all."""

    brokers: int
    host: str
    port: int
    data: str
    file: str | None = None
    overrides: tuple[str, ...] = ()
    log_level: str = "INFO"
    log_format: str = "text"
    event_loop: str = "auto"
    as_version: str | None = None
    faults: str | None = None
    faults_listener: str | None = None
    """HOST:PORT of the broker 0; the others listen on the ports after it."""
    ready_lines: tuple[str, ...] = ()
    """Printed when clients can connect to all brokers."""


def check_options(options: ClusterOptions) -> None:
    """Raises StartupError."""
    if not 1 <= options.brokers <= BROKERS_MAX:
        raise StartupError(f"--brokers {options.brokers}: a number from 1 to {BROKERS_MAX} is expected")
    if options.port == 1 or options.port + options.brokers - 1 > _PORT_MAX:
        raise StartupError(f"--port {options.port}: the ports of the cluster are not all between 1 and {_PORT_MAX}")
    for override in options.overrides:
        key = override.partition("=")[0]
        if key in DERIVED:
            raise StartupError(f"--override {override}: {key} is derived for each broker of a local cluster")


def service_port(options: ClusterOptions) -> int:
    """The port of the metadata service: the one before the first broker's."""
    return options.port - 1 if options.port else 0


def service_directory(options: ClusterOptions) -> str:
    return os.path.join(options.data, "zookeeper")


def broker_ids(options: ClusterOptions) -> range:
    return range(options.brokers)


def broker_command(
    options: ClusterOptions, broker_id: int, zookeeper_connect: str, defaults: Mapping[str, str]
) -> list[str]:
    """The command of one broker. `defaults`: those of `broker_defaults`."""
    port = options.port + broker_id if options.port else 0
    derived = {
        **defaults,
        "broker.id": str(broker_id),
        "listeners": f"PLAINTEXT://{format_address(options.host, port)}",
        "log.dirs": os.path.join(options.data, f"broker-{broker_id}"),
        "zookeeper.connect": zookeeper_connect,
    }
    command = [sys.executable, "-c", _PROGRAM, "serve", *([options.file] if options.file else [])]
    for override in (*(f"{key}={value}" for key, value in derived.items()), *options.overrides):
        command += ["--override", override]
    command += ["--log-level", options.log_level, "--log-format", options.log_format]
    if options.as_version is not None:
        command += ["--as-version", options.as_version]
    if options.faults is not None:
        command += ["--faults", options.faults]
    if options.faults_listener is not None:
        command += ["--faults-listener", _faults_listener(options.faults_listener, broker_id)]
    return [*command, "--event-loop", options.event_loop]


def _faults_listener(address: str, broker_id: int) -> str:
    """What is no address is left to the broker, which refuses it."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + broker_id}" if port.isdecimal() and int(port) else address


def broker_defaults(options: ClusterOptions) -> dict[str, str]:
    """Settings that fit a cluster of that size on one machine, unless the operator sets them.

    Raises: StartupError, ConfigError, as `gather_settings`.

    When all brokers stop, the last ones find nobody to take their partitions over, and would try again for 15 s.
    """
    replicas = min(_REPLICAS_DEFAULT, options.brokers)
    defaults = {"controlled.shutdown.retry.backoff.ms": "100"}
    if replicas < _REPLICAS_DEFAULT:
        defaults["offsets.topic.replication.factor"] = str(replicas)
        defaults["transaction.state.log.replication.factor"] = str(replicas)
        defaults["transaction.state.log.min.isr"] = str(min(_MIN_ISR_DEFAULT, replicas))
    given = gather_settings(file=options.file, overrides=options.overrides, environment=os.environ).texts
    return {key: value for key, value in defaults.items() if key not in given}
