"""AlterReplicaLogDirs (key 34), served: 0-2.

Moves each replica to the requested log directory, in the background. A replica that this broker does not have yet will
be created there (KIP-113).

Kafka: KafkaApis.handleAlterReplicaLogDirsRequest.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from odradek.broker.apis.authorization import require
from odradek.broker.apis.named_partitions import NamedPartitions, named_partitions
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.outcomes_by_topic import OutcomesByTopic
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from odradek.timer.sliced_work import Wait

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> Steps:
    require(broker, ctx, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    paths: dict[TopicPartition, str] = {}
    if len(request.dirs) > 1:
        for log_dir in request.dirs:
            for topic_partition in (yield from _named([log_dir])):
                paths[topic_partition] = log_dir.path  # the last entry of a replica counts
                yield None
    topics = OutcomesByTopic(_topic, _result)
    moves = broker.replica_manager.moves
    for topic_partition in paths or (yield from _named(request.dirs)):
        path = paths[topic_partition] if paths else request.dirs[0].path
        yield Wait(partial(moves.prepare, topic_partition, path))
        error = moves.alter(topic_partition, path)
        topics.add(*topic_partition, error)
        yield Wait(partial(moves.discard_prepared, topic_partition))
    ctx.reply(AlterReplicaLogDirsResponse(results=topics))


_NO_PARTITIONS: Final[Sequence[tuple[str, list[int]]]] = (("", []),)
"""Makes a step of a directory without topics."""


def _named(dirs: Iterable[AlterReplicaLogDir]) -> Generator[None, None, NamedPartitions]:
    return named_partitions(
        pair
        for log_dir in dirs
        for pair in chain(_NO_PARTITIONS, ((topic.name, topic.partitions) for topic in log_dir.topics))
    )


def _topic(name: str, partitions: Sequence[AlterReplicaLogDirPartitionResult]) -> AlterReplicaLogDirTopicResult:
    return AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)


def _result(index: int, code: int) -> AlterReplicaLogDirPartitionResult:
    return AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)


def error_response(
    request: AlterReplicaLogDirsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, AlterReplicaLogDirsResponse]:
    topics = OutcomesByTopic(_topic, _result)
    for topic_partition in (yield from _named(request.dirs)):
        topics.add(*topic_partition, code)
        yield
    return AlterReplicaLogDirsResponse(results=topics)
