"""A pytest plugin: kazoo's own tests, as they are in its package, with `odradek zookeeper` as their server.

kazoo's tests ask `kazoo.testing.common` for servers, which starts Java. This plugin puts a module with the same class
in its place before the tests are imported; the tests themselves are unchanged. Use:

    python -m pytest -p tests.support.clusters.kazoo_suite --pyargs kazoo.tests.test_client

With `KAZOO_SUITE_SERVER=apache` in the environment the server is one of Apache ZooKeeper, for comparison.
"""

from __future__ import annotations

import os
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_zookeeper import OdradekZooKeeper

SERVERS: dict[str, type[ZooKeeper | OdradekZooKeeper]] = {"apache": ZooKeeper, "odradek": OdradekZooKeeper}
SERVER = SERVERS[os.environ.get("KAZOO_SUITE_SERVER", "odradek")]
SETTINGS = {"4lw.commands.whitelist": "*", "tickTime": "2000"}


class ManagedServer:
    """One server, with the names that kazoo's tests use."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="kazoo-suite-")
        self._server = SERVER(Path(self._directory.name), SETTINGS)
        self.running = False

    @property
    def address(self) -> str:
        return self._server.address

    @property
    def secure_address(self) -> str:
        return self._server.address

    @property
    def client_port(self) -> int:
        return self._server.port

    def run(self) -> None:
        if not self.running:
            self._server.start()
            self.running = True

    def stop(self) -> None:
        if self.running:
            self._server.stop()
            self.running = False

    def destroy(self) -> None:
        self.stop()

    def get_logs(self) -> list[str]:
        return self._server.log_text().splitlines(keepends=True)[-100:]


class ZookeeperCluster:
    """Made by kazoo's harness, with settings for a JVM, which are not needed."""

    def __init__(self, **settings: Any) -> None:
        self._servers = [ManagedServer() for _ in range(settings.get("size", 1))]

    def __getitem__(self, index: int) -> ManagedServer:
        return self._servers[index]

    def __iter__(self) -> Iterator[ManagedServer]:
        return iter(self._servers)

    def start(self) -> None:
        for server in self:
            server.run()

    def stop(self) -> None:
        for server in self:
            server.stop()

    terminate = stop

    def get_logs(self) -> list[str]:
        return [line for server in self for line in server.get_logs()]


os.environ.update({"ZOOKEEPER_VERSION": "3.8.4", "ZOOKEEPER_CLUSTER_SIZE": "1"})
_common = types.ModuleType("kazoo.testing.common")
_common.ZookeeperCluster = ZookeeperCluster  # type: ignore[attr-defined]
sys.modules["kazoo.testing.common"] = _common
