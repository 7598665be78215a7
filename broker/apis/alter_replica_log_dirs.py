"""AlterReplicaLogDirs (key 34), served: 0-2.

Each replica named is moved to the log directory it is named under, in the background; a replica that this broker does
not have yet will be made there (KIP-113).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services
    from odradek.protocol.errors import ErrorCode

SLICE = 16
"""Replicas whose future logs are made before the event loop has a turn."""


def handle(broker: Services, ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> None:
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> None:
    errors: dict[TopicPartition, ErrorCode] = {}
    for count, (topic_partition, path) in enumerate(_paths(request).items(), 1):
        errors[topic_partition] = broker.replica_manager.moves.alter(topic_partition, path)
        if not count % SLICE:
            await asyncio.sleep(0)
    ctx.reply(_response(errors))


def _paths(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """Where each replica is to go; the last word counts."""
    return {
        TopicPartition(topic.name, index): log_dir.path
        for log_dir in request.dirs
        for topic in log_dir.topics
        for index in topic.partitions
    }


def _response(errors: Mapping[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic_partition, error in errors.items():
        result = AlterReplicaLogDirPartitionResult(partition_index=topic_partition.partition, error_code=error)
        topics.setdefault(topic_partition.topic, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=found) for name, found in topics.items()]
    )


def error_response(
    request: AlterReplicaLogDirsRequest, version: int, code: ErrorCode, message: str | None
) -> AlterReplicaLogDirsResponse:
    return _response(dict.fromkeys(_paths(request), code))
