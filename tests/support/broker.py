"""The port to a broker under test, Odradek or Apache Kafka: its address, data directory and log, and start and stop.

`FAST_SETTINGS` are given to both targets alike: a difference in behaviour is never a difference in configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

FAST_SETTINGS: Mapping[str, str] = {
    "broker.id": "0",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "zookeeper.session.timeout.ms": "6000",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.ms": "-1",  # tests write records of long ago
}


class Broker(Protocol):
    """A broker under test."""

    @property
    def target(self) -> str:
        """`odradek` or `apache`."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def bootstrap(self) -> str:
        """`host:port`, as clients want it."""

    @property
    def log_dir(self) -> Path:
        """The one directory of `log.dirs`."""

    def start(self) -> None:
        """Start, or start again on the same data directory and port; returns when clients can connect."""

    def stop(self) -> None:
        """A controlled shutdown by SIGTERM; fails unless the exit status is the one a clean stop has."""

    def kill(self) -> None:
        """SIGKILL."""

    def close(self) -> None:
        """Kill the process if it still runs: its data is not needed any more."""

    @property
    def log_bytes(self) -> int:
        """How long the log is."""

    def log_text(self, start: int = 0) -> str:
        """The log of the running (or last) process, from this byte on."""
