"""The events of the controller.

Events come from watches, from the controller itself, and from requests of brokers and clients; the last have a `reply`
for their result. The reply of an event that is dropped, because the session expired or the broker shuts down, gets
NOT_CONTROLLER.

Events that watchers put can be compared. The others are tuples, which nothing compares: tuples of different classes
with the same fields are equal.

Kafka: ControllerEvent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from odradek.controller.model.compared_by_fields import ComparedByFields
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.znodes.features import FeatureUpdate
from odradek.controller.znodes.znodes import ProducerIdsBlock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataResponse
from odradek.protocol.topic_partition import TopicPartition

T_contra = TypeVar("T_contra", contravariant=True)


class Reply(Protocol[T_contra]):
    """Takes the result of an event, once. An asyncio future is one."""

    def set_result(self, result: T_contra, /) -> None: ...

    def set_exception(self, exception: BaseException, /) -> None: ...


class ElectionType(IntEnum):
    """The election types of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionTrigger(Enum):
    AUTO = "AutoTriggered"
    ZK = "ZkTriggered"
    ADMIN_CLIENT = "AdminClientTriggered"


ElectionResults: TypeAlias = "dict[TopicPartition, int | KafkaError]"
"""The new leader of each partition, or the error. Those that do not exist are left out: a request of 1 MB may name
260,000."""

ReassignmentResults: TypeAlias = "Sequence[KafkaError | None]"
"""In the order of the request, which may name 170,000 partitions: a dictionary of them would have 20 MB."""


class Startup(ComparedByFields):
    """The broker has started: watch the controller's node and take part in the election."""

    __slots__ = ()


class ControllerChange(ComparedByFields):
    """`/controller` was created or changed."""

    __slots__ = ()


class Reelect(ComparedByFields):
    """`/controller` was deleted."""

    __slots__ = ()


class DeleteController(ComparedByFields):
    """The failover of this broker has failed: delete `/controller`, so that a broker is elected again.

    `fence`: the fencing token of the failed election. Kafka: KafkaController.triggerControllerMove.
    """

    __slots__ = __match_args__ = ("fence",)

    def __init__(self, fence: int) -> None:
        self.fence = fence


class RegisterBrokerAndReelect(ComparedByFields):
    """A new session has begun: register the broker again, with a new broker epoch, and take part in the election."""

    __slots__ = ()


class Expire(NamedTuple):
    """The session is lost. The next session begins after the reply."""

    reply: Reply[None]


class BrokerChange(ComparedByFields):
    """The list of registered brokers changed."""

    __slots__ = ()


class BrokerModifications(ComparedByFields):
    """A broker changed its registration."""

    __slots__ = __match_args__ = ("broker_id",)

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id


class TopicChange(ComparedByFields):
    """Topics were created or deleted."""

    __slots__ = ()


class PartitionModifications(ComparedByFields):
    """A topic node changed: partitions may have been added."""

    __slots__ = __match_args__ = ("topic",)

    def __init__(self, topic: str) -> None:
        self.topic = topic


class TopicDeletion(ComparedByFields):
    """The list of topics to delete changed."""

    __slots__ = ()


class IsrChangeNotification(ComparedByFields):
    """Leaders with a Kafka before 2.7 have written ISRs themselves."""

    __slots__ = ()


class LogDirEventNotification(ComparedByFields):
    """A log directory of a broker has failed."""

    __slots__ = ()


class ZkPartitionReassignment(ComparedByFields):
    """`/admin/reassign_partitions` was created."""

    __slots__ = ()


class LeaderAndIsrResponseReceived(NamedTuple):
    """A broker responded to LeaderAndIsr."""

    broker_id: int
    response: LeaderAndIsrResponse


class UpdateMetadataResponseReceived(NamedTuple):
    """A broker responded to UpdateMetadata."""

    broker_id: int
    response: UpdateMetadataResponse


class TopicDeletionStopReplicaResponseReceived(NamedTuple):
    """A broker responded to a StopReplica with deletion."""

    broker_id: int
    error_code: int
    partition_errors: Mapping[TopicPartition, int]


class AutoPreferredReplicaLeaderElection(ComparedByFields):
    """The periodic check for brokers that do not lead enough of their preferred partitions."""

    __slots__ = ()


class UncleanLeaderElectionEnable(ComparedByFields):
    """The default of unclean.leader.election.enable became true."""

    __slots__ = ()


class TopicUncleanLeaderElectionEnable(ComparedByFields):
    """A topic's unclean.leader.election.enable became true."""

    __slots__ = __match_args__ = ("topic",)

    def __init__(self, topic: str) -> None:
        self.topic = topic


class ReplicaLeaderElection(NamedTuple):
    """Elect leaders of these partitions, for None of those in `/admin/preferred_replica_election`."""

    partitions: Iterable[TopicPartition] | None
    election_type: ElectionType
    trigger: ElectionTrigger
    reply: Reply[ElectionResults] | None = None


class ControlledShutdown(NamedTuple):
    """A broker shuts down; the reply gets the partitions that it still leads."""

    broker_id: int
    broker_epoch: int
    reply: Reply[list[TopicPartition]]


class AlterPartitionReceived(NamedTuple):
    """A leader proposes ISRs of its partitions."""

    request: AlterPartitionRequest
    version: int
    reply: Reply[AlterPartitionResponse]


class AllocateProducerIds(NamedTuple):
    """A broker requests its next block of producer ids."""

    broker_id: int
    broker_epoch: int
    reply: Reply[ProducerIdsBlock]


class ApiPartitionReassignment(NamedTuple):
    """Start reassignments to these target replicas; None cancels one."""

    targets: Iterable[tuple[TopicPartition, tuple[int, ...] | None]]
    reply: Reply[ReassignmentResults]


class ListPartitionReassignments(NamedTuple):
    """The reassignments of these partitions, for None of all."""

    partitions: Iterable[TopicPartition] | None
    reply: Reply[Mapping[TopicPartition, ReplicaAssignment]]


class UpdateFeatures(NamedTuple):
    """Change the finalized features; the reply gets None or the error of each update."""

    updates: Sequence[FeatureUpdate]
    reply: Reply[Mapping[str, KafkaError | None]]


RequestEvent: TypeAlias = (
    ReplicaLeaderElection
    | ControlledShutdown
    | AlterPartitionReceived
    | AllocateProducerIds
    | ApiPartitionReassignment
    | ListPartitionReassignments
    | UpdateFeatures
)

ControllerEvent: TypeAlias = (
    Startup
    | ControllerChange
    | Reelect
    | DeleteController
    | RegisterBrokerAndReelect
    | Expire
    | BrokerChange
    | BrokerModifications
    | TopicChange
    | PartitionModifications
    | TopicDeletion
    | IsrChangeNotification
    | LogDirEventNotification
    | ZkPartitionReassignment
    | LeaderAndIsrResponseReceived
    | UpdateMetadataResponseReceived
    | TopicDeletionStopReplicaResponseReceived
    | AutoPreferredReplicaLeaderElection
    | UncleanLeaderElectionEnable
    | TopicUncleanLeaderElectionEnable
    | RequestEvent
)


def preempt(event: ControllerEvent) -> None:
    """Complete the reply of an event that will not be handled."""
    fail(event, KafkaError(ErrorCode.NOT_CONTROLLER))


def fail(event: ControllerEvent, error: KafkaError) -> None:
    """Complete the reply of an event that failed."""
    if isinstance(event, Expire):
        event.reply.set_result(None)
    elif isinstance(event, RequestEvent) and event.reply is not None:
        event.reply.set_exception(error)
