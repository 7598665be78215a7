"""The two brokers of a comparison: Odradek and Apache Kafka 3.9, on one machine, in one run, with the same settings.

Apache Kafka runs with its usual settings (1 GB heap, G1, both compilers), and each benchmark warms it up before it
measures. Only ratios within a run mean something: absolute figures depend on the machine and its load.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from tests.support.processes.apache.apache import IN_EARNEST, ApacheBroker, ZooKeeper
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

Contender: TypeAlias = OdradekBroker | ApacheBroker

ADMIN_TIMEOUT_S = 60

SETTINGS: Mapping[str, str] = {
    "log.segment.delete.delay.ms": "1000",  # the disk is freed before the next measurement
    "log.retention.check.interval.ms": "5000",
    "log.initial.task.delay.ms": "5000",
}


@dataclass(frozen=True, slots=True)
class Contenders:
    """Makes brokers, each in a directory and, for Apache, a chroot of its own."""

    directory: Path
    zookeeper: ZooKeeper

    def new_odradek(self, name: str) -> OdradekBroker:
        return OdradekBroker(self.directory / f"odradek-{name}", SETTINGS, port=free_port())

    def new_apache(self, name: str) -> ApacheBroker:
        return ApacheBroker(self.directory / f"apache-{name}", self.zookeeper.new_chroot(), SETTINGS, IN_EARNEST)

    @contextmanager
    def both(self, name: str) -> Iterator[tuple[OdradekBroker, ApacheBroker]]:
        """One broker of each, started."""
        odradek, apache = self.new_odradek(name), self.new_apache(name)
        try:
            odradek.start()
            apache.start()
            yield odradek, apache
        finally:
            odradek.close()
            apache.close()


@contextmanager
def contenders() -> Iterator[Contenders]:
    """A directory and a ZooKeeper for the time of a run.

    The modules are compiled into a cache of the run's own: `PYTHONDONTWRITEBYTECODE`, which containers like to set,
    would add a tenth of a second of compiling to each start.
    """
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as path:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(REPOSITORY / ".cache" / "bytecode")
        zookeeper = ZooKeeper(Path(path) / "zookeeper")
        zookeeper.start()
        try:
            yield Contenders(Path(path), zookeeper)
        finally:
            zookeeper.stop()


def create_topic(broker: Contender, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until its partitions have leaders; `delete_topic` gives the disk back."""
    settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
    with RawClient(broker.host, broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        created = client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=ADMIN_TIMEOUT_S * 1000), 5)
        assert created.topics[0].error_code == 0, created  # type: ignore[attr-defined]
        wanted = build(ApiKey.METADATA, topics=[{"name": name}])
        while True:
            answer = client.call(wanted, 9).topics[0]  # type: ignore[attr-defined]
            if len(answer.partitions) == partitions and all(p.leader_id >= 0 for p in answer.partitions):
                return


def delete_topic(broker: Contender, name: str) -> None:
    with RawClient(broker.host, broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        client.call(build(ApiKey.DELETE_TOPICS, topic_names=[name], timeout_ms=ADMIN_TIMEOUT_S * 1000), 5)


def frame_of(request: Request, version: int, client_id: str = "bench") -> bytes:
    """A request with its length before it, to be sent many times."""
    payload = encode_request(RequestHeader(request.API_KEY, version, 1, client_id), request)
    return struct.pack(">i", len(payload)) + payload
