from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.broker.tools.admin.reassignment.reassignment_plan import Throttles
from odradek.broker.tools.admin.reassignment.replication_throttle import (
    clear_throttles,
    throttle_log_dirs,
    throttle_replication,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support.clusters.admin_cluster import AdminCluster, outcome

Altered = list[tuple[int, int, str, dict[str, tuple[int, str | None]]]]


def altered(cluster: AdminCluster, work: Callable[[AdminClient], Awaitable[None]], status: int = 0) -> Altered:
    """The broker of the request, kind and name of the resource, operation and value of each config."""
    cluster.on(IncrementalAlterConfigsRequest, lambda broker_id, request: IncrementalAlterConfigsResponse())
    outcome(work, status)
    return [
        (
            broker_id,
            resource.resource_type,
            resource.resource_name,
            {config.name: (config.config_operation, config.value) for config in resource.configs},
        )
        for broker_id, request in cluster.requests(IncrementalAlterConfigsRequest)
        for resource in request.resources
    ]


def test_replication_is_throttled_by_topics_and_at_each_broker(cluster: AdminCluster) -> None:
    found = Throttles({"t": "0:1"}, {"t": "0:3"}, [1, 3])
    rates = {"leader.replication.throttled.rate": (0, "500"), "follower.replication.throttled.rate": (0, "500")}
    assert altered(cluster, lambda client: throttle_replication(client, found, 500)) == [
        (
            1,
            2,
            "t",
            {
                "leader.replication.throttled.replicas": (0, "0:1"),
                "follower.replication.throttled.replicas": (0, "0:3"),
            },
        ),
        (1, 4, "1", rates),
        (3, 4, "3", rates),
    ]


def test_moves_between_directories_are_throttled_at_each_broker(cluster: AdminCluster) -> None:
    rates = {"replica.alter.log.dirs.io.max.bytes.per.second": (0, "7")}
    assert altered(cluster, lambda client: throttle_log_dirs(client, [2], 7)) == [(2, 4, "2", rates)]


def test_all_of_it_is_taken_away_again(cluster: AdminCluster) -> None:
    found = altered(cluster, lambda client: clear_throttles(client, [2], ["t"]))
    assert [(broker, kind, name, sorted(configs)) for broker, kind, name, configs in found] == [
        (
            2,
            4,
            "2",
            [
                "follower.replication.throttled.rate",
                "leader.replication.throttled.rate",
                "replica.alter.log.dirs.io.max.bytes.per.second",
            ],
        ),
        (1, 2, "t", ["follower.replication.throttled.replicas", "leader.replication.throttled.replicas"]),
    ]
    assert all(value == (1, None) for *_, configs in found for value in configs.values())


def test_all_others_are_taken_away_when_a_broker_is_dead(
    cluster: AdminCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.unreachable.add(2)
    found = altered(cluster, lambda client: clear_throttles(client, [2, 3, 4], ["t"]), status=1)
    assert [name for _, _, name, _ in found] == ["3", "t"]
    failed = "odradek: Not all throttles could be removed: broker 2 is down; broker 4 is not alive\n"
    assert capsys.readouterr().err == failed


def test_a_refusal_ends_the_command(cluster: AdminCluster, capsys: pytest.CaptureFixture[str]) -> None:
    refused = AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_CONFIG, error_message="not so", resource_name="2"
    )
    cluster.on(
        IncrementalAlterConfigsRequest,
        lambda broker_id, request: IncrementalAlterConfigsResponse(responses=[refused]),
    )
    assert outcome(lambda client: throttle_log_dirs(client, [2], 7), status=1) == []
    assert capsys.readouterr().err == "odradek: Configs of 2: not so\n"
