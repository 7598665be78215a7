"""ElectLeaders (key 43), served: 0-2.

Null partitions mean all; the response then leaves out those that need no election. v1: the election type, preferred (0)
or unclean (1). Only the active controller answers.

Kafka: KafkaApis.handleElectLeaders.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import require
from odradek.broker.apis.named_partitions import AnsweredPartitions, NamedPartitions, named_partitions
from odradek.controller.events import ElectionType
from odradek.controller.loop_turns import in_turns, let_go, result_in_turns
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.controller.partition_reassignment import NO_PARTITION
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.controller.events import ElectionResults

TIMED_OUT: Final = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
WITHOUT_MESSAGE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)

FIRST_ERROR_VERSION = 1
"""The first version with a top-level error."""


def handle(broker: Services, ctx: RequestContext, request: ElectLeadersRequest) -> None:
    require(broker, ctx, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    broker.spawn(ctx, request, _elect(broker, ctx, request))


async def _elect(broker: Services, ctx: RequestContext, request: ElectLeadersRequest) -> None:
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    if request.topic_partitions is None:
        named = await _all_partitions(broker)
    else:
        named = await result_in_turns(named_partitions(Mapped(_split, request.topic_partitions), index))
    deadline_ms = ctx.received_ms + request.timeout_ms
    try:
        outcomes = await broker.controller.elect_leaders(named, election_type)
        otherwise = NO_PARTITION
    except KafkaError as error:
        if error.code != ErrorCode.NOT_CONTROLLER:
            raise
        outcomes, otherwise = {}, error.as_value()  # an error of each partition, not of the response
    elected = {tp: outcome async for tp, outcome in in_turns(outcomes.items()) if not isinstance(outcome, KafkaError)}
    late = await broker.topic_waits.wait_for_elected(elected, max(0, deadline_ms - broker.clock.monotonic_ms()))
    if request.topic_partitions is None:
        named = await _without_unneeded(named, outcomes)
    failures: list[KafkaError | None] = []
    async for tp in in_turns(named):
        outcome = outcomes.get(tp, otherwise)
        failures.append(outcome if isinstance(outcome, KafkaError) else TIMED_OUT if tp in late else None)
    await let_go(outcomes)
    results = AnsweredPartitions(named, failures, _topic, _result)
    ctx.reply(ElectLeadersResponse(replica_election_results=results))


async def _all_partitions(broker: Services) -> NamedPartitions[int]:
    states = broker.metadata_cache.snapshot.partitions
    return NamedPartitions([(topic, list(found)) async for topic, found in in_turns(states.items()) if found], index)


async def _without_unneeded(named: NamedPartitions[int], outcomes: ElectionResults) -> NamedPartitions[int]:
    kept: dict[str, list[int]] = {}
    async for tp in in_turns(named):
        outcome = outcomes.get(tp)
        if not (isinstance(outcome, KafkaError) and outcome.code == ErrorCode.ELECTION_NOT_NEEDED):
            kept.setdefault(tp.topic, []).append(tp.partition)
    return NamedPartitions(list(kept.items()), index)


def _split(topic: TopicPartitions) -> tuple[str, Sequence[int]]:
    return topic.topic, topic.partitions


def _topic(name: str, results: Sequence[PartitionResult]) -> ReplicaElectionResult:
    return ReplicaElectionResult(topic=name, partition_result=results)


def _result(index: int, error: KafkaError | None) -> PartitionResult:
    result = PartitionResult(partition_id=index, error_message=None)
    if error is not None:
        result.error_code = error.code
        if error.code not in WITHOUT_MESSAGE:
            result.error_message = error.message
    return result


def error_response(
    request: ElectLeadersRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, ElectLeadersResponse]:
    yield

    def refused_partition(number: int) -> PartitionResult:
        return PartitionResult(partition_id=number, error_code=code, error_message=message)

    def refused(topic: TopicPartitions) -> ReplicaElectionResult:
        return _topic(topic.topic, Mapped(refused_partition, topic.partitions))

    return ElectLeadersResponse(
        error_code=code if version >= FIRST_ERROR_VERSION else ErrorCode.NONE,
        replica_election_results=Mapped(refused, request.topic_partitions or ()),
    )
