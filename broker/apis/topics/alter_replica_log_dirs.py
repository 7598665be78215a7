"""AlterReplicaLogDirs (key 34), served: 0-2.

Moves each replica to the requested log directory, in the background. A replica that this broker does not have yet will
be created there (KIP-113).

Kafka: KafkaApis.handleAlterReplicaLogDirsRequest.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.apis.authorization import require
from odradek.broker.apis.named_partitions import AnsweredPartitions, NamedPartitions, named_partitions
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Mapped, ReadInOrder
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from odradek.timer.sliced_work import Wait, listed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import ErrorCode
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: AlterReplicaLogDirsRequest) -> Steps:
    require(broker, ctx, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    named = yield from _named(request.dirs)
    errors = array("h")
    moves = broker.replica_manager.moves
    for topic_partition, replica in named.partitions():
        yield Wait(partial(moves.prepare, topic_partition, replica.path))
        errors.append(moves.alter(topic_partition, replica.path))
        yield Wait(partial(moves.discard_prepared, topic_partition))
    ctx.reply(AlterReplicaLogDirsResponse(results=AnsweredPartitions(named, errors, _topic, _result)))


class _Replica(NamedTuple):
    """The replica of a partition on this broker, and the log directory that it shall have."""

    path: str
    partition_index: int


_NO_TOPIC: Final = "\ud800"
"""No topic of a request has this name: a surrogate alone is not valid in UTF-8."""


class _Topics(ReadInOrder[tuple[str, Sequence[_Replica]]]):
    """Those of all directories. Each directory begins with a topic without partitions, so that it is a step."""

    __slots__ = ("_count", "_dirs")

    def __init__(self, dirs: Sequence[AlterReplicaLogDir], count: int) -> None:
        self._dirs = dirs
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[str, Sequence[_Replica]]]:
        for log_dir in self._dirs:
            yield _NO_TOPIC, ()
            replica = partial(_Replica, log_dir.path)
            yield from ((topic.name, Mapped(replica, topic.partitions)) for topic in log_dir.topics)


def _named(dirs: Sequence[AlterReplicaLogDir]) -> Generator[None, None, NamedPartitions[_Replica]]:
    """Of a replica that is in two directories the last one counts."""
    count = 0
    for log_dir in dirs:
        count += 1 + len(log_dir.topics)
        yield
    return (yield from named_partitions(_Topics(dirs, count), attrgetter("partition_index")))


def _topic(name: str, partitions: Sequence[AlterReplicaLogDirPartitionResult]) -> AlterReplicaLogDirTopicResult:
    return AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)


def _result(replica: _Replica, code: int) -> AlterReplicaLogDirPartitionResult:
    return AlterReplicaLogDirPartitionResult(partition_index=replica.partition_index, error_code=code)


def error_response(
    request: AlterReplicaLogDirsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, AlterReplicaLogDirsResponse]:
    named = yield from _named(request.dirs)
    codes = yield from listed(code for _ in named)
    return AlterReplicaLogDirsResponse(results=AnsweredPartitions(named, codes, _topic, _result))
