"""LeaderAndIsr (API key 4), versions 0-7, flexible from 4.

The controller tells a broker which partitions it leads and which it follows. (In KRaft, brokers read the metadata log
instead; a KRaft controller sends this during a migration.)

v1   is_new: the replica may be created
v2   broker_epoch fences restarted brokers (KIP-380); partitions grouped by topic
v3   adding_replicas and removing_replicas of a reassignment (KIP-455)
v4   flexible
v5   topic ids; type 1 is an incremental request, 2 a full one; errors grouped by topic id (KIP-516)
v6   leader_recovery_state (KIP-704)
v7   is_kraft_controller, during a migration (KIP-866)
"""

from __future__ import annotations

from odradek.protocol.codec.limits import MAX_CLUSTER_VALUES
from odradek.protocol.codec.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class LeaderAndIsrPartitionState(Struct):
    topic_name: str = string("0-1", ignorable=True)
    partition_index: int = int32("0+")
    controller_epoch: int = int32("0+")
    leader: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array(INT32, "0+")
    partition_epoch: int = int32("0+")
    replicas: list[int] = array(INT32, "0+")
    adding_replicas: list[int] = array(INT32, "3+", ignorable=True)
    removing_replicas: list[int] = array(INT32, "3+", ignorable=True)
    is_new: bool = boolean("1+", ignorable=True)
    leader_recovery_state: int = int8("6+")


class LeaderAndIsrTopicState(Struct):
    topic_name: str = string("2+")
    topic_id: bytes = uuid("5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, "2+")


class LeaderAndIsrLiveLeader(Struct):
    broker_id: int = int32("0+")
    host_name: str = string("0+")
    port: int = int32("0+")


class LeaderAndIsrRequest(Request, key=4, versions="0-7", flexible="4+", max_values=MAX_CLUSTER_VALUES):
    controller_id: int = int32("0+")
    is_kraft_controller: bool = boolean("7+")
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("2+", default=-1, ignorable=True)
    type: int = int8("5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, "0-1")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader, "0+")


class LeaderAndIsrPartitionError(Struct):
    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class LeaderAndIsrTopicError(Struct):
    topic_id: bytes = uuid("5+")
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "5+")


class LeaderAndIsrResponse(Response, key=4, versions="0-7", flexible="4+"):
    error_code: int = int16("0+")
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, "5+")
