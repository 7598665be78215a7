"""Fifty clean stops of a broker in each role: Odradek's brokers, a mixed cluster, and Apache's brokers for comparison.

No partition may be silent for more than a second longer than it is with Apache's brokers in the same run, and the same
holds for the mixed cluster. ODRADEK_SOAK_STOPS shortens the run.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.clusters.clean_stops import ROLES, CleanStops
from tests.support.clusters.cluster import Cluster, Kind, running_cluster
from tests.support.processes.apache.apache import ZooKeeper

pytestmark = pytest.mark.soak

STOPS = int(os.environ.get("ODRADEK_SOAK_STOPS", "50"))
LONGER_AT_MOST_S = 1.0
SETTINGS = {
    "replica.fetch.backoff.ms": "1000",  # its default
    "replica.lag.time.max.ms": "30000",  # likewise
}


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path / "zookeeper")
    server.start()
    yield server
    server.stop()


def silences(zookeeper: ZooKeeper, directory: Path, kinds: Mapping[int, Kind]) -> dict[str, float]:
    """The longest silence in each role, in seconds."""
    longest = {}
    with running_cluster(Cluster(directory, zookeeper, kinds, SETTINGS)) as cluster:
        stops = CleanStops(cluster, "stops")
        for role in ROLES:
            found = [stops.stop_one(role) for _ in range(STOPS)]
            print(
                f"{directory.name}: {STOPS} stops of a {role}, silent for {max(found):.2f} s at most, "
                f"{statistics.median(found):.2f} s at the median"
            )
            longest[role] = max(found)
        stops.finish()
        cluster.check_logs()
    return longest


def test_no_partition_is_silent_for_long(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    apache = silences(zookeeper, tmp_path / "apache", dict.fromkeys((0, 1, 2), "apache"))
    allowed_s = max(apache.values()) + LONGER_AT_MOST_S
    own = silences(zookeeper, tmp_path / "odradek", dict.fromkeys((0, 1, 2), "odradek"))
    mixed = silences(zookeeper, tmp_path / "mixed", {0: "odradek", 1: "apache", 2: "odradek"})
    assert max(own.values()) <= allowed_s, (own, apache)
    assert max(mixed.values()) <= allowed_s, (mixed, apache)
