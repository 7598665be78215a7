"""StopReplica (key 5), served: 0-4.

v0-2 name partitions with one delete flag for all. v1: the broker epoch. v3: a leader epoch and a flag for each. v4: the
controller's kind.

Kafka: KafkaApis.handleStopReplicaRequest.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.broker.apis.cluster.broker_epoch import is_stale
from odradek.broker.apis.cluster.coordinators import coordinator_of
from odradek.broker.apis.services import in_slices
from odradek.broker.partition.leadership import NO_LEADER_EPOCH
from odradek.controller.model.acls import AclOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import Wait, listed

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

state_change_log = logging.getLogger("odradek.state.change")


@in_slices
def handle(broker: Services, ctx: RequestContext, request: StopReplicaRequest) -> Steps:
    """Stop the replicas, one partition a step. The response waits until the changes are durable: a deletion whose
    directory has failed meanwhile has an error by then.
    """
    authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
    if is_stale(broker, request.broker_epoch):
        ctx.reply(StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
        return
    states = yield from _states(request)

    def on_stopped(topic_partition: TopicPartition, deleted: bool) -> None:
        coordinator = coordinator_of(broker, topic_partition)
        if deleted and coordinator is not None:
            epoch = states[topic_partition].leader_epoch
            coordinator.on_resigned(topic_partition.partition, epoch if epoch >= 0 else None)

    try:
        errors = yield from broker.replica_manager.controller_requests.stop_replicas(
            request.controller_epoch, states, on_stopped
        )
    except KafkaError as error:
        ctx.reply(StopReplicaResponse(error_code=error.code))
        return
    state_change_log.info(
        "[Broker id=%d] Finished StopReplica request from controller %d for %d partitions",
        broker.broker_id,
        request.controller_id,
        len(errors),
    )
    yield Wait(lambda done: broker.log_manager.when_durable(lambda failure: done()))
    response = StopReplicaResponse()
    for topic_partition, error_code in errors.items():
        response.partition_errors.append(
            StopReplicaPartitionError(
                topic_name=topic_partition.topic, partition_index=topic_partition.partition, error_code=error_code
            )
        )
        yield None
    ctx.reply(response)


def _states(request: StopReplicaRequest) -> Generator[None, None, dict[TopicPartition, StopReplicaPartitionState]]:
    """One state a partition, from any of the three forms of a request."""
    states: dict[TopicPartition, StopReplicaPartitionState] = {}
    flat = yield from listed((part.topic_name, part.partition_index) for part in request.ungrouped_partitions)
    for named in request.topics:
        flat += yield from listed((named.name, index) for index in named.partition_indexes)
        yield
    for name, index in flat:
        states[TopicPartition(name, index)] = StopReplicaPartitionState(
            partition_index=index, leader_epoch=NO_LEADER_EPOCH, delete_partition=request.delete_partitions
        )
        yield
    for topic in request.topic_states:
        for state in topic.partition_states:
            states[TopicPartition(topic.topic_name, state.partition_index)] = state
            yield
    return states


def error_response(
    request: StopReplicaRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, StopReplicaResponse]:
    states = yield from _states(request)
    errors = yield from listed(
        StopReplicaPartitionError(topic_name=tp.topic, partition_index=tp.partition, error_code=code) for tp in states
    )
    return StopReplicaResponse(error_code=code, partition_errors=errors)
