from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.groups.groups import main
from odradek.protocol.messages.list_groups import ListGroupsRequest
from tests.support.clusters.admin_cluster import AdminCluster, Command
from tests.support.clusters.admin_groups import AdminGroups, member


@pytest.fixture(autouse=True)
def some_groups(groups: AdminGroups) -> None:
    groups.has("z", member("m"), state="Stable")
    groups.has("a")
    groups.has("connect", protocol_type="connect")


def test_consumer_groups_are_listed_by_name(command: Command) -> None:
    assert command(main, "--list") == (0, ["a", "z"], "")


def test_states_and_types_are_columns(command: Command) -> None:
    status, lines, _ = command(main, "--list", "--state", "--type")
    assert (status, [line.split() for line in lines]) == (
        0,
        [["GROUP", "TYPE", "STATE"], ["a", "Classic", "Empty"], ["z", "Classic", "Stable"]],
    )
    assert lines[0] == f"{'GROUP':<25} {'TYPE':<20} {'STATE':<20}"
    printed = json.loads("".join(command(main, "--list", "--state", "--json")[1]))
    assert printed == [{"group": "a", "state": "Empty"}, {"group": "z", "state": "Stable"}]


def test_the_brokers_filter_by_state(command: Command, cluster: AdminCluster) -> None:
    assert [line.split()[0] for line in command(main, "--list", "--state", "stable, Empty,")[1]] == ["GROUP", "a", "z"]
    (request, *others) = [request for _, request in cluster.requests(ListGroupsRequest)]
    assert request == ListGroupsRequest(states_filter=["Stable", "Empty"])
    assert len(others) == 2  # each broker is asked
    status, _, error = command(main, "--list", "--state", "Stable,nope")
    assert status == 1
    assert error.startswith("odradek: Invalid state list 'Stable,nope'. Valid states are: PreparingRebalance, ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--list", "--delete"],
        ["--describe"],
        ["--delete"],
        ["--reset-offsets", "--topic", "t", "--to-latest"],
        ["--describe", "--group", "g", "--all-groups"],
        ["--describe", "--group", "g", "--members", "--offsets"],
        ["--describe", "--group", "g", "--state", "Stable"],
        ["--describe", "--group", "g", "--type"],
        ["--list", "--members"],
        ["--delete", "--group", "g", "--topic", "t"],
        ["--delete-offsets", "--group", "g"],
        ["--delete-offsets", "--topic", "t"],
        ["--delete-offsets", "--group", "g", "--group", "h", "--topic", "t"],
        ["--reset-offsets", "--group", "g", "--topic", "t"],
        ["--reset-offsets", "--group", "g", "--to-latest"],
        ["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--to-earliest"],
        ["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--dry-run", "--execute"],
        ["--reset-offsets", "--group", "g", "--topic", "t", "--to-offset", "x"],
        ["--list", "--execute"],
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(main, *arguments)
