"""A broker that stops cleanly silences no partition: the controller, a leader of some, a follower of all.

`tests/soak` does it fifty times, beside Apache's brokers too; `tests/simulation` does it with seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.clusters.clean_stops import CleanStops
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.clusters.faulty_cluster import SILENT_AFTER_A_STOP_S

pytestmark = pytest.mark.oracle


def test_no_partition_is_silent_for_long(new_cluster: Callable[..., Cluster], target: Kind) -> None:
    cluster = new_cluster(dict.fromkeys((0, 1, 2), target))
    cluster.start()
    stops = CleanStops(cluster, "stops")
    silence_s = [stops.stop_one(role) for role in ("controller", "leader", "controller", "follower")]
    stops.finish()
    assert max(silence_s) <= SILENT_AFTER_A_STOP_S
