"""A replica manager over real logs, with a clock that is moved by hand, for tests of produce, fetch and control
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from odradek.broker.fetch.fetch_session import FetchSession, PartitionFetch
from odradek.broker.fetch.leader_throttle import LeaderThrottle
from odradek.broker.fetch.log_reads import LogReads
from odradek.broker.fetch.replica_selector import ClientMetadata, ReplicaSelector
from odradek.broker.fetch.replication_quota import ReplicationQuota
from odradek.broker.fetch.results import FetchParams, LogAppendResult, LogReadResult
from odradek.broker.inter_broker.alter_partition_manager import AlterPartitionItem
from odradek.broker.metadata.metadata_cache import MetadataCache
from odradek.broker.partition.partition import Partition
from odradek.broker.replica_manager.leader_and_isr_states import partition_states
from odradek.broker.replica_manager.replica_manager import ReplicaManager
from odradek.broker.replication.alter_log_dirs import MoveSettings
from odradek.broker.replication.replica_fetchers import Fetchers
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from odradek.protocol.messages.stop_replica import StopReplicaPartitionState
from odradek.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from odradek.protocol.records.batch import batches
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.storage.disk.file_system import FileSystem
from odradek.storage.disk.ports import IoPool, WorkerPool
from odradek.storage.manager.log_manager import LogManager
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from odradek.timer.sliced_work import SlicedWork, run_through
from tests.support.disks.logs import Disk

OWN_ID = 0
TOPIC_ID = bytes(range(16))
TP = TopicPartition("t", 0)


class Proposal(AlterPartitionItem):
    """An ISR that a leader has proposed to the controller."""

    def accept(self, **changes: object) -> None:
        """Answer as a controller does that has written what was proposed."""
        proposed = self.proposed
        state = {"partition_epoch": proposed.partition_epoch + 1, **changes}
        self.respond(proposed._replace(**state))  # type: ignore[arg-type]


class NotedFetchers:
    """Fetches nothing. `followed` has the leader and the leader epoch of what would be fetched."""

    def __init__(self) -> None:
        self.followed: dict[TopicPartition, tuple[int | None, int]] = {}
        self.is_ending = False
        self.is_shut_down = False

    def add(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self.followed[partition.topic_partition] = (partition.leader_id, partition.leader_epoch)

    def remove(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self.followed.pop(topic_partition, None)

    def resize(self) -> None:
        """Does nothing: no pool is shared."""

    def begin_shutdown(self) -> None:
        self.is_ending = True

    def shutdown(self) -> None:
        self.is_shut_down = True


class Replicas:
    """One broker's replicas. `lead` and `follow` are what the controller would say."""

    def __init__(
        self,
        path: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        log_dirs: Sequence[Path] = (),
        fs: FileSystem | None = None,
        io_pool: IoPool | None = None,
        workers: WorkerPool | None = None,
        move_threads: int = 1,
        fetch_max_bytes: int = 1024 * 1024,
        make_fetchers: Callable[[ReplicaManager], Fetchers] | None = None,
        own_id: int = OWN_ID,
        replica_selector: ReplicaSelector | None = None,
    ) -> None:
        """`log_dirs`: those beside `path`. Without `make_fetchers` nothing is fetched, and `fetchers` notes what was to
        be.
        """
        self.own_id = own_id
        self.disk = Disk(path, fs=fs, io_pool=io_pool, workers=workers)
        self.slices = SlicedWork(self.disk.timer, self.disk.clock, in_turns=True)
        self.log_manager = LogManager([str(each) for each in (path, *log_dirs)], {}, self.disk.environment)
        self.log_manager.startup({"t": dict(overrides or {})})
        self.cache = MetadataCache(own_id)
        self.fetchers = NotedFetchers()
        self.move_bytes_per_second = self.leader_bytes_per_second = 2**63 - 1
        self.proposals: list[Proposal] = []
        self.manager = ReplicaManager(
            broker_id=own_id,
            log_manager=self.log_manager,
            metadata_cache=self.cache,
            clock=self.disk.clock,
            timer=self.disk.timer,
            replica_lag_time_max_ms=30_000,
            high_watermark_checkpoint_interval_ms=5_000,
            move_settings=MoveSettings(
                quota=ReplicationQuota(self.disk.clock, lambda: self.move_bytes_per_second),
                threads=move_threads,
                fetch_max_bytes=fetch_max_bytes,
            ),
            alter_partition=self,
            make_fetchers=make_fetchers or (lambda manager: self.fetchers),
            leader_throttle=LeaderThrottle(
                ReplicationQuota(self.disk.clock, lambda: self.leader_bytes_per_second), own_id
            ),
            replica_selector=replica_selector,
        )
        self.log_manager.on_log_dir_failure = lambda _, offline: self.manager.handle_log_dir_failure(offline)
        self.leaders: list[TopicPartition] = []
        self.followers: list[TopicPartition] = []

    def advance(self, ms: int) -> None:
        self.disk.advance(ms)

    def submit(self, item: AlterPartitionItem, /) -> None:
        """Keeps each proposal of a leader until the test answers it. Implements `AlterPartition`."""
        self.proposals.append(Proposal(item.topic_partition, item.topic_id, item.proposed, item.respond))

    def lead(self, tp: TopicPartition = TP, **state: object) -> ErrorCode:
        return self.state(tp, leader=self.own_id, **state)

    def follow(self, tp: TopicPartition = TP, *, leader: int = 1, **state: object) -> ErrorCode:
        return self.state(tp, leader=leader, replicas=[leader, self.own_id], **state)

    def state(
        self,
        tp: TopicPartition = TP,
        *,
        leader: int,
        epoch: int = 0,
        partition_epoch: int = 0,
        replicas: Sequence[int] = (OWN_ID,),
        isr: Sequence[int] | None = None,
        topic_id: bytes = TOPIC_ID,
        controller_epoch: int = 1,
        is_new: bool = True,
        alive: Sequence[int] | None = None,
    ) -> ErrorCode:
        """One LeaderAndIsr for one partition; the metadata cache is told as well, with all replicas alive if it is not
        said who is.
        """
        self.know(tp, leader=leader, replicas=replicas, alive=alive)
        request = LeaderAndIsrRequest(
            controller_id=0,
            controller_epoch=controller_epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=tp.topic,
                    topic_id=topic_id,
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            partition_index=tp.partition,
                            controller_epoch=controller_epoch,
                            leader=leader,
                            leader_epoch=epoch,
                            isr=list(replicas if isr is None else isr),
                            partition_epoch=partition_epoch,
                            replicas=list(replicas),
                            is_new=is_new,
                        )
                    ],
                )
            ],
        )

        def moved(leaders: Sequence[object], followers: Sequence[object]) -> None:
            self.leaders += [partition.topic_partition for partition in leaders]  # type: ignore[attr-defined]
            self.followers += [partition.topic_partition for partition in followers]  # type: ignore[attr-defined]

        states = partition_states(request)
        errors = self.manager.controller_requests.become_leader_or_follower(request.controller_epoch, states, moved)
        self.manager.high_watermark_checkpoints.begin()
        return errors[tp]

    def stop(
        self, tp: TopicPartition = TP, *, delete: bool = True, epoch: int = -2, controller_epoch: int = 1
    ) -> ErrorCode:
        """One StopReplica for one partition."""
        state = StopReplicaPartitionState(partition_index=tp.partition, leader_epoch=epoch, delete_partition=delete)
        requests = self.manager.controller_requests
        return run_through(requests.stop_replicas(controller_epoch, {tp: state}, lambda tp, deleted: None))[tp]

    def know(
        self,
        tp: TopicPartition,
        *,
        leader: int = OWN_ID,
        replicas: Sequence[int] = (OWN_ID,),
        alive: Sequence[int] | None = None,
    ) -> None:
        """What an UpdateMetadata says about the partition; every replica is alive if it is not said who is."""
        self.cache.update(
            UpdateMetadataRequest(
                controller_id=0,
                topic_states=[
                    UpdateMetadataTopicState(
                        topic_name=tp.topic,
                        topic_id=TOPIC_ID,
                        partition_states=[
                            UpdateMetadataPartitionState(
                                partition_index=tp.partition, leader=leader, replicas=list(replicas), isr=list(replicas)
                            )
                        ],
                    )
                ],
                live_brokers=[
                    UpdateMetadataBroker(
                        id=broker_id,
                        rack=f"rack{broker_id}",
                        endpoints=[UpdateMetadataEndpoint(port=9092, host=f"h{broker_id}", listener="PLAINTEXT")],
                    )
                    for broker_id in (replicas if alive is None else alive)
                ],
            )
        )

    def append(
        self,
        records: memoryview,
        tp: TopicPartition = TP,
        *,
        acks: int = 1,
        timeout_ms: int = 1_000,
        internal: bool = False,
        guard: object | None = None,
        answers: list[LogAppendResult] | None = None,
    ) -> list[LogAppendResult]:
        """The answer, as a list that stays empty while there is none."""
        answers = [] if answers is None else answers
        work = self.manager.append_in_steps(
            timeout_ms=timeout_ms,
            required_acks=acks,
            internal_topics_allowed=internal,
            origin=AppendOrigin.CLIENT,
            records={tp: records},
            verification_guards={tp: guard},
            respond=lambda results: answers.append(results[tp]),
        )
        self.slices.submit(work)
        return answers

    def fetch(
        self,
        offset: int,
        tp: TopicPartition = TP,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        partition_bytes: int = 1 << 20,
        replica_id: int = -1,
        replica_epoch: int = -1,
        log_start_offset: int = -1,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        epoch: int = -1,
        last_fetched_epoch: int = -1,
        topic_id: bytes = ZERO_UUID,
        hard_max_bytes: bool = False,
        leader_only: bool = True,
        rack: str | None = None,
    ) -> list[LogReadResult]:
        """The answer, as a list that stays empty while there is none."""
        answers: list[LogReadResult] = []
        params = FetchParams(
            replica_id=replica_id,
            replica_epoch=replica_epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation=FetchIsolation.LOG_END if replica_id >= 0 else isolation,
            leader_only=leader_only,
            hard_max_bytes=hard_max_bytes,
            client=None if rack is None else ClientMetadata(rack, "PLAINTEXT"),
        )
        fetch = PartitionFetch(
            tp.topic,
            topic_id,
            tp.partition,
            fetch_offset=offset,
            max_bytes=partition_bytes,
            current_leader_epoch=epoch,
            log_start_offset=log_start_offset,
            last_fetched_epoch=last_fetched_epoch,
        )
        reads = self.manager.reads
        reads.cold_reads.warm([fetch], lambda: fetch_through(reads, params, [fetch], answers.extend))
        return answers


def fetch_through(
    reads: LogReads,
    params: FetchParams,
    fetches: Sequence[PartitionFetch],
    respond: Callable[[Sequence[LogReadResult]], None],
    session: FetchSession | None = None,
) -> None:
    """All steps of a fetch at once; `respond` gets the results, now or later."""
    results = run_through(reads.fetch(params, fetches, respond, session))
    if results is not None:
        respond(results)


def offsets_of(result: LogReadResult) -> list[int]:
    """The base offsets of the batches read."""
    assert result.fetched is not None
    records = result.fetched.records
    data = records.read() if isinstance(records, FileRegion) else bytes(records)
    return [batch.base_offset for batch in batches(memoryview(data))]
