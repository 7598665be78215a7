from __future__ import annotations

import pytest

from odradek.broker.tools.admin.groups.group_requests import assigned_partitions, committed_offsets, describe_groups
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.messages.describe_groups import DescribedGroupMember
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import outcome
from tests.support.clusters.admin_groups import AdminGroups, member


def test_a_group_of_another_protocol_is_refused(groups: AdminGroups, capsys: pytest.CaptureFixture[str]) -> None:
    groups.has("c", protocol_type="connect")
    outcome(lambda client: describe_groups(client, ["c"]), status=1)
    assert capsys.readouterr().err == "odradek: GroupId c is not a consumer group (connect).\n"


def test_partitions_without_a_committed_offset_are_left_out(groups: AdminGroups) -> None:
    groups.has("g", offsets={("t", 0): 5, ("t", 1): -1})
    groups.has("h", offsets={("u", 2): 0})
    (found,) = outcome(lambda client: committed_offsets(client, ["g", "h"]))
    assert found == {"g": {TopicPartition("t", 0): 5}, "h": {TopicPartition("u", 2): 0}}


def test_an_assignment_is_read_in_any_version() -> None:
    assigned = member("m", ("u", [3, 1]), ("t", [0]))
    expected = [TopicPartition("t", 0), TopicPartition("u", 1), TopicPartition("u", 3)]
    assert assigned_partitions(assigned) == expected
    assigned.member_assignment = b"\0\3" + assigned.member_assignment[2:] + b"more"
    assert assigned_partitions(assigned) == expected
    assert assigned_partitions(DescribedGroupMember()) == []


@pytest.mark.parametrize("junk", [b"x", b"\0\0\x7f\xff\xff\xff"])
def test_an_assignment_that_cannot_be_read_is_an_error(junk: bytes) -> None:
    with pytest.raises(CommandFailed, match="the assignment of member m cannot be read"):
        assigned_partitions(DescribedGroupMember(member_id="m", member_assignment=junk))
