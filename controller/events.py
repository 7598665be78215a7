"""What can happen to a controller: one value per event, handled one at a time in the order of arrival.

Some events come from watches, some from the controller itself, some from requests of brokers and clients. Those carry
a `reply`, the place for their one answer. An event that is dropped unhandled, because the session expired or the
broker shuts down, is answered with NOT_CONTROLLER.

Answers to kafka.controller.ControllerEvent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol, TypeAlias, TypeVar

from odradek.controller.reassignment import ReplicaAssignment
from odradek.controller.znodes import ProducerIdsBlock
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


@dataclass(frozen=True, slots=True)
class Startup:
    """The broker has started: watch the controller's node and stand for election."""


@dataclass(frozen=True, slots=True)
class ControllerChange:
    """`/controller` was created or changed."""


@dataclass(frozen=True, slots=True)
class Reelect:
    """`/controller` was deleted."""


@dataclass(frozen=True, slots=True)
class RegisterBrokerAndReelect:
    """A new session began: register the broker again, under a new epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class Expire:
    """The session is lost. Its reply lets the next session begin."""

    reply: Reply[None]


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """Brokers came or went."""


@dataclass(frozen=True, slots=True)
class BrokerModifications:
    """A broker changed its registration."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicChange:
    """Topics were created or deleted."""


@dataclass(frozen=True, slots=True)
class PartitionModifications:
    """A topic node changed: partitions may have been added."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """Topics were put on, or taken off, the list to delete."""


@dataclass(frozen=True, slots=True)
class IsrChangeNotification:
    """Leaders of before Kafka 2.7 changed ISRs themselves."""


@dataclass(frozen=True, slots=True)
class LogDirEventNotification:
    """A broker lost a log directory."""


@dataclass(frozen=True, slots=True)
class ZkPartitionReassignment:
    """`/admin/reassign_partitions` appeared."""


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


@dataclass(frozen=True, slots=True)
class AutoPreferredReplicaLeaderElection:
    """Time to look for brokers that lead too little."""


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable:
    """The default of unclean.leader.election.enable became true."""


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


RequestEvent: TypeAlias = (
    ReplicaLeaderElection
    | ControlledShutdown
    | AlterPartitionReceived
    | AllocateProducerIds
    | ApiPartitionReassignment
    | ListPartitionReassignments
)

ControllerEvent: TypeAlias = (
    Startup
    | ControllerChange
    | Reelect
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
    match event:
        case Expire(reply=expired):
            expired.set_result(None)
        case ReplicaLeaderElection(reply=elected) if elected is not None:
            elected.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
        case (
            ControlledShutdown(reply=reply)
            | AlterPartitionReceived(reply=reply)
            | AllocateProducerIds(reply=reply)
            | ApiPartitionReassignment(reply=reply)
            | ListPartitionReassignments(reply=reply)
        ):
            reply.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
        case _:
            pass
