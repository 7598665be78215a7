"""The events of the controller.

Events come from watches, from the controller itself, and from requests of brokers and clients; the last have a `reply`
for their result. The reply of an event that is dropped, because the session expired or the broker shuts down, gets
NOT_CONTROLLER.

The events are no dataclasses, because these make start-up slower. Those that watchers put can be compared. The others
are tuples, which nothing compares: tuples of different classes with the same fields are equal.

Kafka: ControllerEvent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

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


ElectionResults: TypeAlias = "Mapping[TopicPartition, int | KafkaError]"
"""The new leader of each partition, or the error."""

ReassignmentResults: TypeAlias = "Mapping[TopicPartition, KafkaError | None]"


class _Bare:
    """An event without fields; events of one class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _About:
    """An event about one thing; events of one class about the same are equal."""

    __slots__ = ("_about",)

    def __init__(self, about: int | str) -> None:
        self._about = about

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _About) and type(self) is type(other) and self._about == other._about

    def __hash__(self) -> int:
        return hash((type(self), self._about))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._about!r})"


class Startup(_Bare):
    """The broker has started: watch the controller's node and take part in the election."""

    __slots__ = ()


class ControllerChange(_Bare):
    """`/controller` was created or changed."""

    __slots__ = ()


class Reelect(_Bare):
    """`/controller` was deleted."""

    __slots__ = ()


class DeleteController(_About):
    """The failover of this broker has failed: delete `/controller`, so that a broker is elected again.

    `fence`: the fencing token of the failed election. Kafka: KafkaController.triggerControllerMove.
    """

    __slots__ = __match_args__ = ("fence",)

    def __init__(self, fence: int) -> None:
        super().__init__(fence)
        self.fence = fence


class RegisterBrokerAndReelect(_Bare):
    """A new session has begun: register the broker again, with a new broker epoch, and take part in the election."""

    __slots__ = ()


class Expire(NamedTuple):
    """The session is lost. The next session begins after the reply."""

    reply: Reply[None]


class BrokerChange(_Bare):
    """The list of registered brokers changed."""

    __slots__ = ()


class BrokerModifications(_About):
    """A broker changed its registration."""

    __slots__ = __match_args__ = ("broker_id",)

    def __init__(self, broker_id: int) -> None:
        super().__init__(broker_id)
        self.broker_id = broker_id


class TopicChange(_Bare):
    """Topics were created or deleted."""

    __slots__ = ()


class PartitionModifications(_About):
    """A topic node changed: partitions may have been added."""

    __slots__ = __match_args__ = ("topic",)

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic


class TopicDeletion(_Bare):
    """The list of topics to delete changed."""

    __slots__ = ()


class IsrChangeNotification(_Bare):
    """Leaders with a Kafka before 2.7 have written ISRs themselves."""

    __slots__ = ()


class LogDirEventNotification(_Bare):
    """A log directory of a broker has failed."""

    __slots__ = ()


class ZkPartitionReassignment(_Bare):
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


class AutoPreferredReplicaLeaderElection(_Bare):
    """The periodic check for brokers that do not lead enough of their preferred partitions."""

    __slots__ = ()


class UncleanLeaderElectionEnable(_Bare):
    """The default of unclean.leader.election.enable became true."""

    __slots__ = ()


class TopicUncleanLeaderElectionEnable(_About):
    """A topic's unclean.leader.election.enable became true."""

    __slots__ = __match_args__ = ("topic",)

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic


class ReplicaLeaderElection(NamedTuple):
    """Elect leaders of these partitions, for None of those in `/admin/preferred_replica_election`."""

    partitions: frozenset[TopicPartition] | None
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

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    reply: Reply[ReassignmentResults]


class ListPartitionReassignments(NamedTuple):
    """The reassignments of these partitions, for None of all."""

    partitions: frozenset[TopicPartition] | None
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
