"""Runs `produce` and `consume` against a cluster in memory, with pipes as standard input and output."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile

import pytest

from tests.support.clusters.data_cluster import DataCluster

Main = Callable[[Sequence[str]], int]


class Commands:
    """`main(...)` with bytes in and out."""

    def __init__(self, cluster: DataCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = cluster
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("odradek.broker.tools.data.client.running.SocketLink", cluster.make_link)
        monkeypatch.setattr("odradek.broker.tools.command.client_config.RETRY_BACKOFF_MS", 1)

    def __call__(self, main: Main, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes]:
        """Exit status and standard output."""
        reader, writer = os.pipe()
        with TemporaryFile() as output:
            for module in ("produce", "consume"):
                self._monkeypatch.setattr(f"odradek.broker.tools.data.{module}.STDOUT", output.fileno())
            self._monkeypatch.setattr("odradek.broker.tools.data.produce.STDIN", reader)
            os.write(writer, stdin)
            os.close(writer)
            try:
                status = main(["-b", "host:9001", *arguments])
            finally:
                os.close(reader)
            output.seek(0)
            return status, output.read()
