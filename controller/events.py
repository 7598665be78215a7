"""What can happen to a controller: one value per event, handled one at a time in the order of arrival.

Some events come from watches, some from the controller itself, some from requests of brokers and clients. Those carry
a `reply`, the place for their one answer. An event that is dropped unhandled, because the session expired or the
broker shuts down, is answered with NOT_CONTROLLER.

Kafka: kafka.controller.ControllerEvent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol, TypeAlias, TypeVar

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
    """The one answer of an event. An asyncio future is one."""

    def set_result(self, result: T_contra, /) -> None: ...

    def set_exception(self, exception: BaseException, /) -> None: ...


class ElectionType(IntEnum):
    """What ElectLeaders asks for."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionTrigger(Enum):
    AUTO = "AutoTriggered"
    ZK = "ZkTriggered"
    ADMIN_CLIENT = "AdminClientTriggered"


ElectionResults: TypeAlias = "Mapping[TopicPartition, int | KafkaError]"
"""The new leader of each partition, or why there is none."""

ReassignmentResults: TypeAlias = "Mapping[TopicPartition, KafkaError | None]"


class _Bare:
    """An event that carries nothing; all of a kind are equal. Plain classes, for dataclasses cost at every start."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Startup(_Bare):
    """The broker has started: watch the controller's node and stand for election."""

    __slots__ = ()


class ControllerChange(_Bare):
    """`/controller` was created or changed."""

    __slots__ = ()


class Reelect(_Bare):
    """`/controller` was deleted."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LeaveOffice:
    """The broker was elected and could not take office: somebody else may try. The fencing token is its own."""

    fence: int


class RegisterBrokerAndReelect(_Bare):
    """A new session began: register the broker again, under a new epoch."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Expire:
    """The session is lost. Its reply lets the next session begin."""

    reply: Reply[None]


class BrokerChange(_Bare):
    """Brokers came or went."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BrokerModifications:
    """A broker changed its registration."""

    broker_id: int


class TopicChange(_Bare):
    """Topics were created or deleted."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PartitionModifications:
    """A topic node changed: partitions may have been added."""

    topic: str


class TopicDeletion(_Bare):
    """Topics were put on, or taken off, the list to delete."""

    __slots__ = ()


class IsrChangeNotification(_Bare):
    """Leaders of before Kafka 2.7 changed ISRs themselves."""

    __slots__ = ()


class LogDirEventNotification(_Bare):
    """A broker lost a log directory."""

    __slots__ = ()


class ZkPartitionReassignment(_Bare):
    """`/admin/reassign_partitions` appeared."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class LeaderAndIsrResponseReceived:
    """A broker answered what it was told to lead and to follow."""

    broker_id: int
    response: LeaderAndIsrResponse


@dataclass(frozen=True, slots=True, eq=False)
class UpdateMetadataResponseReceived:
    """A broker answered what it was told of the cluster."""

    broker_id: int
    response: UpdateMetadataResponse


@dataclass(frozen=True, slots=True, eq=False)
class TopicDeletionStopReplicaResponseReceived:
    """A broker answered for replicas it was told to delete."""

    broker_id: int
    error_code: int
    partition_errors: Mapping[TopicPartition, int]


class AutoPreferredReplicaLeaderElection(_Bare):
    """Time to look for brokers that lead too little."""

    __slots__ = ()


class UncleanLeaderElectionEnable(_Bare):
    """The default of unclean.leader.election.enable became true."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TopicUncleanLeaderElectionEnable:
    """A topic's unclean.leader.election.enable became true."""

    topic: str


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaLeaderElection:
    """Without partitions, those named by `/admin/preferred_replica_election`."""

    partitions: frozenset[TopicPartition] | None
    election_type: ElectionType
    trigger: ElectionTrigger
    reply: Reply[ElectionResults] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ControlledShutdown:
    """Answered with the partitions that the broker still leads."""

    broker_id: int
    broker_epoch: int
    reply: Reply[list[TopicPartition]]


@dataclass(frozen=True, slots=True, eq=False)
class AlterPartitionReceived:
    """A leader asks to change the ISR of its partitions."""

    request: AlterPartitionRequest
    version: int
    reply: Reply[AlterPartitionResponse]


@dataclass(frozen=True, slots=True, eq=False)
class AllocateProducerIds:
    """A broker asks for its next block of producer ids."""

    broker_id: int
    broker_epoch: int
    reply: Reply[ProducerIdsBlock]


@dataclass(frozen=True, slots=True, eq=False)
class ApiPartitionReassignment:
    """Target replicas by partition; None cancels."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    reply: Reply[ReassignmentResults]


@dataclass(frozen=True, slots=True, eq=False)
class ListPartitionReassignments:
    """Without partitions, all that are being reassigned."""

    partitions: frozenset[TopicPartition] | None
    reply: Reply[Mapping[TopicPartition, ReplicaAssignment]]


@dataclass(frozen=True, slots=True, eq=False)
class UpdateFeatures:
    """An administrator asks for other finalised features; answered with None or the error of each."""

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
    | LeaveOffice
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
    """Answer an event that will never be handled."""
    fail(event, KafkaError(ErrorCode.NOT_CONTROLLER))


def fail(event: ControllerEvent, error: KafkaError) -> None:
    """Answer an event that was not handled to its end."""
    if isinstance(event, Expire):
        event.reply.set_result(None)
    elif isinstance(event, RequestEvent) and event.reply is not None:
        event.reply.set_exception(error)
