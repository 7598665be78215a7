from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.groups.groups import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_groups import AdminGroups, member


@pytest.fixture(autouse=True)
def some_groups(groups: AdminGroups, cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [2]))
    groups.has("a")
    groups.has("b")
    groups.has("busy", member("m"), state="Stable")


def test_groups_are_deleted(command: Command) -> None:
    line = "Deletion of requested consumer groups ('a, b') was successful."
    assert command(main, "--delete", "--group", "a", "--group", "b") == (0, [line], "")


def test_those_that_cannot_be_deleted_are_named(command: Command) -> None:
    status, lines, error = command(main, "--delete", "--group", "a", "--group", "busy", "--group", "nope")
    assert (status, lines) == (1, ["These consumer groups were deleted successfully: 'a'"])
    assert error.splitlines() == [
        "odradek: Deletion of some consumer groups failed:",
        "* Group 'busy' could not be deleted due to: The group is not empty.",
        "* Group 'nope' could not be deleted due to: The group id does not exist.",
    ]
    rows = json.loads("".join(command(main, "--delete", "--group", "a", "--group", "nope", "--json")[1]))
    assert rows == [{"group": "a", "error": "NONE"}, {"group": "nope", "error": "GROUP_ID_NOT_FOUND"}]


def test_an_error_code_of_a_later_version(command: Command, cluster: AdminCluster) -> None:
    refused = DeletableGroupResult(group_id="a", error_code=9999)
    cluster.on(DeleteGroupsRequest, lambda broker_id, request: DeleteGroupsResponse(results=[refused]))
    status, lines, error = command(main, "--delete", "--group", "a", "--json")
    assert (status, json.loads("".join(lines))) == (1, [{"group": "a", "error": "UNKNOWN_SERVER_ERROR"}])
    assert "* Group 'a' could not be deleted due to: The server experienced an unexpected error" in error


def test_offsets_are_deleted(command: Command, cluster: AdminCluster) -> None:
    status, lines, _ = command(main, "--delete-offsets", "--group", "a", "--topic", "t", "--topic", "u:3")
    assert (status, lines[0]) == (0, "Request succeed for deleting offsets with topic t, u:3 group a")
    assert [line.split() for line in lines[2:]] == [
        ["TOPIC", "PARTITION", "STATUS"],
        *([topic, str(partition), "Successful"] for topic, partition in (("t", 0), ("t", 1), ("u", 3))),
    ]
    assert [broker_id for broker_id, _ in cluster.requests(OffsetDeleteRequest)] == [3]


def test_offsets_that_cannot_be_deleted_are_named(command: Command, groups: AdminGroups) -> None:
    groups.errors = [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    status, lines, error = command(main, "--delete-offsets", "--group", "a", "--topic", "t:0")
    assert (status, error) == (1, "odradek: Encounter some partition level error, see the details\n")
    assert "Error: Deleting offsets of a topic is forbidden" in lines[-1]
    assert command(main, "--delete-offsets", "--group", "nope", "--topic", "t")[2] == (
        "odradek: 'nope' does not exist.\n"
    )
    assert "odradek: Topic 'nope': " in command(main, "--delete-offsets", "--group", "a", "--topic", "nope")[2]
