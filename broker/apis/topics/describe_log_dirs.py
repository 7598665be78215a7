"""DescribeLogDirs (key 35), served: 0-4.

Null topics mean all. v3: a top-level error. v4: total and usable bytes of each directory's file system.

Kafka: KafkaApis.handleDescribeLogDirsRequest.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.timer.sliced_work import Steps

UNKNOWN_BYTES = -1
UNKNOWN_LAG = -1


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeLogDirsRequest) -> Steps:
    require(broker, ctx, AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        # Without those that are not here: a set of the 260,000 that a request of 1 MB may name has 30 MB.
        has_log = broker.log_manager.has_log
        wanted = set()
        for topic in request.topics:
            yield None
            for index in topic.partitions:
                if has_log(topic_partition := TopicPartition(topic.topic, index)):
                    wanted.add(topic_partition)
                yield None
    results = []
    for log_dir in broker.log_manager.log_dirs:
        result = yield from _describe(broker, log_dir, wanted)
        results.append(result)
    ctx.reply(DescribeLogDirsResponse(results=results))


def _describe(
    broker: Services, log_dir: LogDir, wanted: set[TopicPartition] | None
) -> Generator[None, None, DescribeLogDirsResult]:
    if not log_dir.is_online:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in list(broker.log_manager.logs_in(log_dir)):
        yield
        if wanted is not None and log.topic_partition not in wanted:
            continue
        topics.setdefault(log.topic_partition.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=log.topic_partition.partition,
                partition_size=log.size,
                offset_lag=_offset_lag(broker, log),
                is_future_key=log.is_future,
            )
        )
    total, usable = _space(log_dir.path)
    return DescribeLogDirsResult(
        log_dir=log_dir.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
    )


def _offset_lag(broker: Services, log: UnifiedLog) -> int:
    """How far the log is behind the high watermark, or a future log behind the current one; -1 for a log that no
    partition uses."""
    hosted = broker.replica_manager.hosted(log.topic_partition)
    current = None if hosted is None else hosted.log
    if current is None:
        return UNKNOWN_LAG
    if log.is_future:
        return current.log_end_offset - log.log_end_offset
    return max(current.high_watermark - log.log_end_offset, 0)


def _space(path: str) -> tuple[int, int]:
    try:
        stat = os.statvfs(path)
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    return stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
