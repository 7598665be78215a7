"""The replicas of a partition as files: whether all brokers hold the same bytes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path

from tests.support.clusters.cluster import SETTLE_TIMEOUT_S, Cluster
from tests.support.waiting import eventually


def log_files(log_dir: Path, topic: str, partition: int) -> list[Path]:
    """The segments of a replica, in the order of their offsets."""
    return sorted((log_dir / f"{topic}-{partition}").glob("*.log"))


def log_bytes(log_dir: Path, topic: str, partition: int) -> int:
    """The size of a replica's segments. One that is deleted meanwhile counts as 0."""
    total = 0
    for path in log_files(log_dir, topic, partition):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def log_data(log_dir: Path, topic: str, partition: int) -> bytes:
    return b"".join(path.read_bytes() for path in log_files(log_dir, topic, partition))


def partition_dirs(log_dir: Path) -> set[str]:
    """The partitions a broker has replicas of; those that are being deleted do not count."""
    return {path.name for path in log_dir.iterdir() if path.is_dir() and not path.name.endswith(("-delete", "-stray"))}


def differing_replicas(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[int, tuple[int, str]]]:
    """The partitions whose replicas differ: by broker, the size and a digest."""
    differing = {}
    for topic in topics:
        for partition, state in cluster.tree.partitions(topic).items():
            found = {broker_id: log_data(cluster.log_dir(broker_id), topic, partition) for broker_id in state.replicas}
            if len(set(found.values())) > 1:
                differing[f"{topic}-{partition}"] = {
                    broker_id: (len(data), hashlib.sha256(data).hexdigest()[:8]) for broker_id, data in found.items()
                }
    return differing


def await_identical(cluster: Cluster, *topics: str) -> None:
    """Wait until all replicas of these topics hold the same bytes. Nobody may write to them."""
    cluster.await_complete(*topics)
    eventually(lambda: differing_replicas(cluster, topics), accept=lambda found: not found, timeout_s=SETTLE_TIMEOUT_S)
