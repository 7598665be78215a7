from __future__ import annotations

import json

import pytest

from odradek.broker.tools.admin.topics import get_offsets
from odradek.broker.tools.admin.topics.get_offsets import main
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.support.clusters.admin_cluster import AdminCluster, Command, topic
from tests.support.clusters.admin_groups import AdminGroups


@pytest.fixture(autouse=True)
def some_topics(cluster: AdminCluster, groups: AdminGroups) -> None:
    cluster.has(topic("t", [1], [2]), topic("__consumer_offsets", [1], is_internal=True))


def test_offsets_are_those_of_the_end_or_of_a_time(command: Command) -> None:
    assert command(main) == (0, ["__consumer_offsets:0:100", "t:0:100", "t:1:100"], "")
    assert command(main, "--exclude-internal-topics", "--time", "earliest")[1] == ["t:0:10", "t:1:10"]
    assert command(main, "--topic", "t", "--partitions", "1", "--time", "-2")[1] == ["t:1:10"]
    assert command(main, "--topic-partitions", "t:0", "--time", "5000")[1] == ["t:0:50"]
    assert command(main, "--topic-partitions", "t:0", "--time", "6000")[1] == []
    rows = json.loads("".join(command(main, "--topic-partitions", "t:1", "--json")[1]))
    assert rows == [{"topic": "t", "partition": 1, "offset": 100}]


def test_many_partitions_are_asked_for_in_parts(
    command: Command, cluster: AdminCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get_offsets, "PARTITIONS_PER_REQUEST", 2)
    cluster.has(topic("many", *([1],) * 5))
    assert len(command(main, "--topic", "many")[1]) == 5
    assert len(cluster.requests(ListOffsetsRequest)) == 3


def test_what_is_not_there_is_an_error(command: Command) -> None:
    message = "odradek: Could not match any topic-partitions with the specified filters\n"
    assert command(main, "--topic", "nope") == (1, [], message)


def test_a_partition_with_an_error_is_skipped(command: Command, cluster: AdminCluster) -> None:
    def refused(broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED if broker_id == 1 else ErrorCode.NONE
        found = [
            ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error, offset=7)
            for partition in request.topics[0].partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=found)])

    cluster.on(ListOffsetsRequest, refused)
    status, lines, error = command(main, "--topic", "t")
    assert (status, lines) == (0, ["t:1:7"])
    assert error.startswith("Skip getting offsets for topic-partition t-0 due to error: ")


@pytest.mark.parametrize("arguments", [["--time", "soon"], ["--topic-partitions", "t", "--topic", "t"]])
def test_arguments_that_are_not_valid_are_refused(arguments: list[str], command: Command) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(main, *arguments)
