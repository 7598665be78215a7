from __future__ import annotations

import pytest

from odradek.broker.tools.admin.client.topic_arguments import parse_partitions, partitions_of
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster, outcome, topic


def test_topics_and_partitions_are_put_together(cluster: AdminCluster) -> None:
    cluster.has(topic("t", [1], [2]))
    (found,) = outcome(lambda client: partitions_of(client, ["u:7,", "t", "t:1"]))
    assert found == [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 7)]
    assert outcome(lambda client: partitions_of(client, ["nope"]), status=1) == []


@pytest.mark.parametrize("text", ["t:", ":1", "t:1:2", "t:x", "t:,1", "t:-1", "t:²"])
def test_arguments_that_are_not_valid_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="Invalid"):
        parse_partitions(text)
