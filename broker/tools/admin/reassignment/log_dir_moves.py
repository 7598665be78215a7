"""Moves replicas between the log directories of a broker, and reports the progress.

Kafka: ReassignPartitionsCommand.alterReplicaLogDirs, ReassignPartitionsCommand.findLogDirMoveStates,
ReassignPartitionsCommand.replicaMoveStatesToString.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.tools.admin.reassignment.reassignment_plan import Replica
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient


class Place(NamedTuple):
    """The directory of a replica, and the one it is being moved to."""

    current: str | None
    future: str | None

    def is_moving(self) -> bool:
        return self.current is not None and self.future is not None


NOWHERE = Place(None, None)


async def find_places(client: AdminClient, replicas: Iterable[Replica]) -> dict[Replica, Place]:
    """The place of each replica, from its broker."""
    wanted = set(replicas)
    places: dict[Replica, Place] = {}
    for broker_id in sorted({replica.broker_id for replica in wanted}):
        request = DescribeLogDirsRequest(topics=None)
        response = await client.ask_broker(broker_id, request, DescribeLogDirsResponse)
        for log_dir in response.results:
            for topic in log_dir.topics:
                for partition in topic.partitions:
                    replica = Replica(broker_id, TopicPartition(topic.name, partition.partition_index))
                    if replica in wanted and log_dir.error_code == ErrorCode.NONE:
                        known = places.get(replica, NOWHERE)
                        is_future, path = partition.is_future_key, log_dir.log_dir
                        places[replica] = known._replace(future=path) if is_future else known._replace(current=path)
    return {replica: places.get(replica, NOWHERE) for replica in wanted}


def progress(replica: Replica, place: Place, target: str) -> tuple[str, bool]:
    """The line about the move of a replica, and whether the move has ended."""
    name, broker_id = replica.topic_partition, replica.broker_id
    if place.current is None:
        return f"Partition {name} cannot be found in any live log directory on broker {broker_id}.", True
    if place.future is None and place.current == target:
        return f"Reassignment of replica {replica} completed successfully.", True
    if place.future is None:
        return (
            f"Partition {name} on broker {broker_id} is not being moved from log dir {place.current} to {target}.",
            True,
        )
    if place.future == target:
        return f"Reassignment of replica {replica} is still in progress.", False
    where = f"is being moved to log dir {place.future} instead of {target}"
    return f"Partition {name} on broker {broker_id} {where}.", False


async def start_moves(client: AdminClient, targets: Mapping[Replica, str]) -> set[Replica]:
    """The replicas whose move has started: a broker must have the replica before. Raises: CommandFailed."""
    started = set()
    for broker_id in sorted({replica.broker_id for replica in targets}):
        own = {replica: path for replica, path in targets.items() if replica.broker_id == broker_id}
        response = await client.ask_broker(broker_id, _request(own), AlterReplicaLogDirsResponse)
        for topic in response.results:
            for partition in topic.partitions:
                replica = Replica(broker_id, TopicPartition(topic.topic_name, partition.partition_index))
                if partition.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                    check(partition.error_code, None, f"Failed to alter dir for {replica}")
                    started.add(replica)
    return started


def _request(targets: Mapping[Replica, str]) -> AlterReplicaLogDirsRequest:
    by_path: dict[str, dict[str, list[int]]] = {}
    for replica, path in targets.items():
        name, partition = replica.topic_partition
        by_path.setdefault(path, {}).setdefault(name, []).append(partition)
    dirs = []
    for path, by_topic in by_path.items():
        topics = [AlterReplicaLogDirTopic(name=name, partitions=found) for name, found in by_topic.items()]
        dirs.append(AlterReplicaLogDir(path=path, topics=topics))
    return AlterReplicaLogDirsRequest(dirs=dirs)


def not_started(replicas: Iterable[Replica]) -> CommandFailed:
    """The error of moves that could not be started in time."""
    late = sorted(replicas)
    plural = "" if len(late) == 1 else "s"
    names = ",".join(map(str, late))
    return CommandFailed(f"Timed out before log directory move{plural} could be started for: {names}")
