"""The two brokers of a comparison: Odradek and Apache Kafka 3.9, on one machine, in one run, with the same settings.

Apache Kafka runs with its usual settings (1 GB heap, G1, both compilers), and each benchmark warms it up before it
measures. Only ratios within a run mean something: absolute figures depend on the machine and its load.
"""

from __future__ import annotations

import itertools
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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

ADMIN_TIMEOUT_S = 300
"""Ten thousand partitions take Apache Kafka a minute, and more on a busy machine."""

SETTINGS: Mapping[str, str] = {
    "log.segment.delete.delay.ms": "1000",  # the disk is freed before the next measurement
    "log.retention.check.interval.ms": "5000",
    "log.initial.task.delay.ms": "5000",
}


class Contenders:
    """Makes brokers, each in a directory and, for Apache, a chroot of its own.

    `scale`: the share of its usual amount of work that a workload gets.
    """

    def __init__(self, directory: Path, scale: float = 1) -> None:
        self.directory = directory
        self.scale = scale
        self._zookeeper: ZooKeeper | None = None
        self._numbers = itertools.count()

    @property
    def zookeeper(self) -> ZooKeeper:
        """One for all, started when it is needed first."""
        if self._zookeeper is None:
            self._zookeeper = ZooKeeper(self.directory / "zookeeper", {"forceSync": "yes"})
            self._zookeeper.start()
        return self._zookeeper

    def close(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.stop()

    def new_directory(self, name: str) -> Path:
        """One that no other broker has."""
        return self.directory / f"{name}-{next(self._numbers)}"

    def new(
        self, label: str, name: str, settings: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
    ) -> Contender:
        """A broker of the kind of that label. `settings`: more of them. `prefix`: a command that runs the broker's."""
        directory, own = self.new_directory(f"{label.lower()}-{name}"), {**SETTINGS, **(settings or {})}
        if label.startswith("Apache"):
            return ApacheBroker(directory, self.zookeeper.new_chroot(), own, IN_EARNEST, prefix=prefix)
        odradek = OdradekBroker(directory, own, port=free_port())
        odradek.prefix = prefix
        return odradek

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
def contenders(scale: float = 1) -> Iterator[Contenders]:
    """A directory, and a ZooKeeper if one is needed, for the time of a run.

    The modules are compiled into a cache of the run's own: `PYTHONDONTWRITEBYTECODE`, which containers like to set,
    would add a tenth of a second of compiling to each start.
    """
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as path:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(REPOSITORY / ".cache" / "bytecode")
        made = Contenders(Path(path), scale)
        try:
            yield made
        finally:
            made.close()


def create_topic(
    broker: Contender, name: str, partitions: int, configs: Mapping[str, str] | None = None, *, replicas: int = 1
) -> None:
    """Create a topic and wait until its partitions have leaders; `delete_topic` gives the disk back."""
    settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": replicas, "configs": settings}
    with RawClient(broker.host, broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        created = client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=ADMIN_TIMEOUT_S * 1000), 5)
        assert created.topics[0].error_code == 0, created  # type: ignore[attr-defined]
        wanted = build(ApiKey.METADATA, topics=[{"name": name}])
        while True:
            answer = client.call(wanted, 9).topics[0]  # type: ignore[attr-defined]
            if len(answer.partitions) == partitions and all(p.leader_id >= 0 for p in answer.partitions):
                return


def delete_topic(broker: Contender, name: str) -> None:
    delete_topics(broker, [name])


def delete_topics(broker: Contender, names: Sequence[str]) -> None:
    with RawClient(broker.host, broker.port, timeout_s=ADMIN_TIMEOUT_S) as client:
        client.call(build(ApiKey.DELETE_TOPICS, topic_names=list(names), timeout_ms=ADMIN_TIMEOUT_S * 1000), 5)


def frame_of(request: Request, version: int, client_id: str = "bench") -> bytes:
    """A request with its length before it, to be sent many times."""
    payload = encode_request(RequestHeader(request.API_KEY, version, 1, client_id), request)
    return struct.pack(">i", len(payload)) + payload
