"""The fields that a partition and its in-sync replicas share: log, leader, epochs, and subscribed readers.

`Partition` inherits them. They are read several times for each batch, and a reference to a separate object would cost
one more look-up each time.

Kafka: Partition.leaderEpoch, Partition.leaderReplicaIdOpt, Partition.partitionEpoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.broker.partition.partition_news import PartitionNews

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.inter_broker.alter_partition_manager import AlterPartition
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_manager import LogManager
    from odradek.timer.clock import Clock

NO_LEADER_EPOCH: Final = -1


class IsrChanges:
    """How often the ISRs of a broker's partitions changed. Kafka: ReplicaManager.isrShrinkRate and its like."""

    __slots__ = ("expanded", "failed", "shrunk")

    def __init__(self) -> None:
        self.expanded = 0
        self.shrunk = 0
        self.failed = 0
        """Proposals that the controller refused."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PartitionEnvironment:
    """What all partitions of a broker use.

    `watermarks_moved` is called with a partition when its watermarks have moved outside of an append. `alter_partition`
    sends proposals of a new ISR to the controller.
    """

    broker_id: int
    clock: Clock
    log_manager: LogManager
    metadata_cache: MetadataCache
    replica_lag_time_max_ms: int
    alter_partition: AlterPartition
    watermarks_moved: Callable[[TopicPartition], None]
    isr_changes: IsrChanges = field(default_factory=IsrChanges)


class Leadership:
    """The leader of a partition, its epochs, and its log.

    `log` is None until the first LeaderAndIsr that names this broker a replica. `leader_id` is None while no leader is
    known. `leader_epoch_start_offset` is None while the partition is not led here. Every change that a reader may see
    must be announced on `news`.
    """

    __slots__ = (
        "environment",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "news",
        "partition_epoch",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, environment: PartitionEnvironment) -> None:
        self.topic_partition = topic_partition
        self.environment = environment
        self.log: UnifiedLog | None = None
        self.leader_id: int | None = None
        self.leader_epoch = NO_LEADER_EPOCH
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = -1
        self.news = PartitionNews()

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.environment.broker_id

    @property
    def topic_id(self) -> bytes | None:
        """The id stored with the log, None while it has none. A log that existed before the first LeaderAndIsr counts:
        its id may be that of a deleted topic of the same name.
        """
        log = self.log or self.environment.log_manager.get_log(self.topic_partition)
        return None if log is None else log.topic_id
