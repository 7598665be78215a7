from __future__ import annotations

from odradek.controller.model.replica import PartitionAndReplica
from odradek.protocol.topic_partition import TopicPartition


def test_a_replica_reads_as_in_kafkas_logs() -> None:
    replica = PartitionAndReplica(TopicPartition("t", 3), 1)
    assert (replica.topic, str(replica)) == ("t", "[Topic=t,Partition=3,Replica=1]")
