from __future__ import annotations

import json

from odradek.broker.tools.admin.groups.groups import main
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_groups import AdminGroups, member


def test_offsets_and_lag_with_and_without_member(cluster: AdminCluster, groups: AdminGroups, command: Command) -> None:
    cluster.has(topic("t", [1], [2], [3]))
    groups.has(
        "g",
        member("small", ("t", [2])),
        member("large", ("t", [1, 0])),
        state="Stable",
        offsets={("t", 0): 40, ("t", 2): 100, ("gone", 5): 7},
    )
    status, lines, error = command(main, "--describe", "--group", "g")
    assert (status, error, lines[0]) == (0, "", "")
    assert [line.split() for line in lines[1:]] == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"],
        ["g", "t", "0", "40", "100", "60", "large", "/127.0.0.1", "client-large"],
        ["g", "t", "1", "-", "100", "-", "large", "/127.0.0.1", "client-large"],
        ["g", "t", "2", "100", "100", "0", "small", "/127.0.0.1", "client-small"],
        ["g", "gone", "5", "7", "-", "-", "-", "-", "-"],
    ]
    rows = json.loads("".join(command(main, "--describe", "--group", "g", "--json")[1]))
    assert rows[0] == {
        "group": "g",
        "topic": "t",
        "partition": 0,
        "current_offset": 40,
        "log_end_offset": 100,
        "lag": 60,
        "consumer_id": "large",
        "host": "/127.0.0.1",
        "client_id": "client-large",
    }
    assert (rows[3]["log_end_offset"], rows[3]["lag"], rows[3]["host"]) == (None, None, None)


def test_members_and_what_they_are_assigned(groups: AdminGroups, command: Command) -> None:
    groups.has("g", member("m", ("t", [10, 2]), ("u", [0])), member("idle"), state="PreparingRebalance")
    _, lines, error = command(main, "--describe", "--group", "g", "--members", "--verbose")
    assert error == "\nWarning: Consumer group 'g' is rebalancing.\n"
    assert [line.split() for line in lines[1:]] == [
        ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"],
        ["g", "m", "/127.0.0.1", "client-m", "3", "(0),", "(10,2)"],
        ["g", "idle", "/127.0.0.1", "client-idle", "0", "-"],
    ]
    groups.has("g", member("m", instance="static"), state="Stable")
    assert command(main, "--describe", "--group", "g", "--members")[1][1].split()[2] == "GROUP-INSTANCE-ID"


def test_the_state_of_a_group(groups: AdminGroups, command: Command) -> None:
    groups.has("g", member("m"), state="Stable")
    _, lines, _ = command(main, "--describe", "--group", "g", "--state")
    assert [line.split() for line in lines[1:]] == [
        ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
        ["g", "host:9003", "(3)", "range", "Stable", "1"],
    ]


def test_a_group_that_does_not_exist_is_an_error_and_the_others_are_printed(
    groups: AdminGroups, command: Command
) -> None:
    groups.has("g", offsets={("gone", 0): 1})
    status, lines, error = command(main, "--describe", "--group", "nope", "--group", "g")
    assert (status, lines[2].split()[0]) == (1, "g")
    assert error == "\nConsumer group 'g' has no active members.\nodradek: Consumer group 'nope' does not exist.\n"


def test_many_groups_are_described_in_few_requests(
    cluster: AdminCluster, groups: AdminGroups, command: Command
) -> None:
    """10,000 groups with 4 partitions each: the leaders are asked for once, and a batch holds 100 groups."""
    cluster.has(topic("t", [1], [1], [2], [3]))
    for number in range(10_000):
        groups.has(f"g{number:05}", state="Stable", offsets={("t", partition): number for partition in range(4)})
    status, lines, _ = command(main, "--describe", "--all-groups", "--json")
    assert (status, len(lines)) == (0, 40_002)
    assert len(cluster.requests(DescribeGroupsRequest)) == len(cluster.requests(OffsetFetchRequest)) == 100
    assert len(cluster.requests(ListOffsetsRequest)) == 300
    assert len(cluster.requests(MetadataRequest)) < 5
