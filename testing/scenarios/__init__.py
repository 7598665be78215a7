"""Failures that happen to a broker, made of faults: for a block of a test, with `with` or `async with`.

with scenarios.coordinator_failover(broker) as scenario:
    consume(broker)
scenario.assert_called()
"""

from odradek.testing.scenarios.clusters import (
    controller_loss,
    coordinator_loss,
    leader_moves,
    network_partition,
    replay,
    rolling_restart,
)
from odradek.testing.scenarios.coordinators import coordinator_failover
from odradek.testing.scenarios.disks import disk_full, slow_disk
from odradek.testing.scenarios.leaders import leader_move

__all__ = [
    "controller_loss",
    "coordinator_failover",
    "coordinator_loss",
    "disk_full",
    "leader_move",
    "leader_moves",
    "network_partition",
    "replay",
    "rolling_restart",
    "slow_disk",
]
