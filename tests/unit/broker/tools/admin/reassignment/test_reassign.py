from __future__ import annotations

import subprocess
import sys

import pytest

from odradek.broker.tools.admin.reassignment.reassign import main
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.support.clusters.admin_cluster import AdminCluster, Command


def test_ongoing_reassignments_are_listed(cluster: AdminCluster, command: Command) -> None:
    partitions: list[OngoingPartitionReassignment] = []

    def ongoing(broker_id: int, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
        topics = [OngoingTopicReassignment(name="t", partitions=partitions)] if partitions else []
        return ListPartitionReassignmentsResponse(topics=topics)

    cluster.on(ListPartitionReassignmentsRequest, ongoing)
    assert command(main, "--list") == (0, ["No partition reassignments found."], "")
    partitions += [
        OngoingPartitionReassignment(
            partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1, 2]
        ),
        OngoingPartitionReassignment(partition_index=0, replicas=[1]),
    ]
    assert command(main, "--list")[1] == [
        "Current partition reassignments:",
        "t-0: replicas: 1.",
        "t-1: replicas: 1,2,3. adding: 3. removing: 1,2.",
    ]


@pytest.mark.parametrize("arguments", [[], ["--execute"], ["--generate", "--broker-list", "1"], ["--list", "--verify"]])
def test_usage(command: Command, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(main, *arguments)
    assert ended.value.code == 2


def test_a_listing_loads_nothing_for_plans() -> None:
    """JSON, dataclasses and the tables of configs took a third of its start."""
    program = "import sys, odradek.broker.tools.admin.reassignment.reassign; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "odradek.broker.tools.admin.client.admin_client" in names
    assert not {"dataclasses", "json", "odradek.storage.config.config_def", "random"} & {*names}
