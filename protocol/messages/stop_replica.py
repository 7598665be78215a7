"""StopReplica (API key 5), versions 0-4, flexible from 2.

The controller tells a broker to stop serving replicas, and perhaps to delete them.

v1   broker_epoch fences restarted brokers (KIP-380); partitions grouped by topic
v2   flexible
v3   a leader epoch and a deletion flag for each partition, in place of one flag for all (KIP-570); epoch -2 means that
     the topic is being deleted, -1 that there is none
v4   is_kraft_controller, during a migration (KIP-866)
"""

from __future__ import annotations

from odradek.protocol.codec.limits import MAX_CLUSTER_VALUES
from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, boolean, int16, int32, int64, string


class StopReplicaPartitionV0(Struct):
    topic_name: str = string("0")
    partition_index: int = int32("0")


class StopReplicaTopicV1(Struct):
    name: str = string("1-2")
    partition_indexes: list[int] = array(INT32, "1-2")


class StopReplicaPartitionState(Struct):
    partition_index: int = int32("3+")
    leader_epoch: int = int32("3+", default=-1)
    delete_partition: bool = boolean("3+")


class StopReplicaTopicState(Struct):
    topic_name: str = string("3+")
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, "3+")


class StopReplicaRequest(Request, key=5, versions="0-4", flexible="2+", max_values=MAX_CLUSTER_VALUES):
    controller_id: int = int32("0+")
    is_kraft_controller: bool = boolean("4+")
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = boolean("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, "0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, "1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class StopReplicaResponse(Response, key=5, versions="0-4", flexible="2+"):
    error_code: int = int16("0+")
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError, "0+")
