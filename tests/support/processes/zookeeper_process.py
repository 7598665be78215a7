"""A server of ZooKeeper's protocol in a process of its own: what tests do with it, whichever program it runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

from tests.support.processes import pauses
from tests.support.processes.process import ManagedProcess

SETTINGS: Final[Mapping[str, str]] = {"tickTime": "500", "maxSessionTimeout": "60000", "maxClientCnxns": "0"}
"""Of both servers. Without `maxSessionTimeout` a session lasts 20 ticks, 10 s, at most; Kafka asks for 18."""


class ZooKeeperProcess:
    """The subclass starts and stops `_process`, which listens on `host` and `port`."""

    host: str
    port: int
    _process: ManagedProcess

    def __init__(self) -> None:
        self._chroots: Iterator[int] = itertools.count(1)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def pause(self) -> None:
        pauses.pause(self._process.pid)

    def resume(self) -> None:
        pauses.resume(self._process.pid)

    def new_chroot(self) -> str:
        """`host:port/path` of a name space that nobody has used."""
        return f"{self.address}/kafka-{next(self._chroots)}"
