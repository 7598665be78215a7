"""Transactions in memory and in the log: what is loaded, appended, taken back and expired."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.coordinator.transaction.config import TransactionConfig
from odradek.coordinator.transaction.records import transaction_key
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata, TransitMetadata
from odradek.coordinator.transaction.transaction_state_manager import APPEND_ERRORS, Owned, TransactionStateManager
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import IMMEDIATE_STEPS
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.coordinator_log import InMemoryCoordinatorLog

START_MS = 1_700_000_000_000
WEEK_MS = 7 * 24 * 3_600_000
P0 = TopicPartition("t", 0)


class World:
    def __init__(self, log: InMemoryCoordinatorLog | None = None) -> None:
        self.clock = ManualClock(START_MS)
        self.timer = SystemTimer(self.clock)
        self.log = InMemoryCoordinatorLog(partition_count=2) if log is None else log
        self.unfinished: list[str] = []
        self.unloaded: list[int] = []
        self.states = TransactionStateManager(
            config=TransactionConfig(),
            log=self.log,
            clock=self.clock,
            timer=self.timer,
            on_unfinished=lambda epoch, metadata, transit: self.unfinished.append(metadata.transactional_id),
            on_unload=self.unloaded.append,
        )

    def lead_all(self, epoch: int = 0) -> None:
        for partition in range(self.log.partition_count):
            self.states.elect(partition, epoch)

    def add(self, transactional_id: str, producer_id: int = 1) -> TransactionMetadata:
        metadata = TransactionMetadata(
            transactional_id, producer_id=producer_id, timeout_ms=500, last_update_timestamp_ms=self.clock.time_ms()
        )
        self.states.add(metadata)
        return metadata

    def append(self, transactional_id: str, transit: TransitMetadata, epoch: int = 0) -> list[ErrorCode]:
        answers: list[ErrorCode] = []
        self.states.append(transactional_id, epoch, transit, answers.append)
        return answers

    def begin(self, transactional_id: str) -> TransactionMetadata:
        metadata = self.add(transactional_id)
        transit = metadata.prepare_increment_producer_epoch(500, None, self.clock.time_ms())
        assert isinstance(transit, TransitMetadata)
        assert self.append(transactional_id, transit) == [ErrorCode.NONE]
        return metadata


def test_an_id_belongs_to_one_partition() -> None:
    world = World()
    assert world.states.find("a") == ErrorCode.NOT_COORDINATOR
    world.states.elect(world.states.partition_for("a"), 0)
    assert world.states.find("a") is None
    other = next(name for name in "bcdefgh" if world.states.partition_for(name) != world.states.partition_for("a"))
    assert world.states.find(other) == ErrorCode.NOT_COORDINATOR


def test_a_topic_that_is_created_again_is_loaded_in_its_first_epoch() -> None:
    world = World()
    world.lead_all(epoch=3)
    partition = world.states.partition_for("a")
    world.states.resign(partition)
    assert world.states.find("a") == ErrorCode.NOT_COORDINATOR
    world.states.elect(partition, 0)
    assert world.states.find("a") is None
    world.add("a")
    owned = world.states.find("a")
    assert isinstance(owned, Owned)
    assert owned.coordinator_epoch == 0


def test_clients_are_told_to_wait_while_a_partition_is_loaded() -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    for number in range(200):
        world.log.append(0, [SimpleRecord(START_MS, transaction_key(f"id{number}"), None)], lambda error, _: None)
    world.lead_all()
    assert world.states.find("a") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.states.is_anything_loading
    world.timer.advance()
    assert world.states.find("a") is None
    assert not world.states.is_anything_loading


@pytest.mark.parametrize("count", [None, 50, 51, 10])
def test_nothing_is_loaded_once_the_topic_has_another_number_of_partitions(
    count: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Partitions that were loaded before stay. Another broker may map the ids of this one to other partitions."""
    world = World(InMemoryCoordinatorLog(partition_count=50))
    number = world.states.partition_for("a")
    later = next(name for name in "bcdefgh" if world.states.partition_for(name) != number)
    world.states.elect(number, 0)
    world.states.topic_partition_count = count
    world.states.elect(world.states.partition_for(later), 0)
    assert world.states.find("a") is None
    is_stable = count in (None, 50)
    assert world.states.find(later) == (None if is_stable else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    message = f"Transaction topic number of partitions has changed from 50 to {count}"
    assert (message in caplog.text) is not is_stable


def test_what_was_appended_is_loaded() -> None:
    world = World()
    world.lead_all()
    metadata = world.begin("a")
    assert world.append("a", metadata.prepare_add_partitions([P0], START_MS + 5)) == [ErrorCode.NONE]
    again = World(world.log)
    again.lead_all(3)
    owned = again.states.find("a")
    assert isinstance(owned, Owned)
    found = owned.metadata
    assert (owned.coordinator_epoch, found.state, found.topic_partitions) == (3, TransactionState.ONGOING, {P0})
    assert (found.producer_id, found.producer_epoch, found.timeout_ms) == (1, 0, 500)
    assert (found.start_timestamp_ms, found.last_update_timestamp_ms) == (START_MS + 5, START_MS + 5)
    assert (found.last_producer_id, found.last_producer_epoch) == (-1, -1)
    assert again.unfinished == []


def test_what_is_decided_is_handed_on() -> None:
    world = World()
    world.lead_all()
    metadata = world.begin("a")
    world.append("a", metadata.prepare_add_partitions([P0], START_MS))
    world.append("a", metadata.prepare_abort_or_commit(TransactionState.PREPARE_COMMIT, START_MS))
    again = World(world.log)
    again.lead_all()
    assert again.unfinished == ["a"]
    owned = again.states.find("a")
    assert isinstance(owned, Owned)
    assert owned.metadata.pending_state is TransactionState.COMPLETE_COMMIT


def test_records_that_cannot_be_understood_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    good = World(world.log)
    good.lead_all()
    good.begin("good")
    for key, value in ((b"\0\x09later", b"x"), (b"\0", b"x"), (transaction_key("bad"), b"\0\0x"), (None, b"x")):
        world.log.append(0, [SimpleRecord(START_MS, key, value)], lambda error, _: None)
    with caplog.at_level(logging.WARNING):
        world.lead_all()
    assert [metadata.transactional_id for metadata in world.states.transactions] == ["good"]
    assert sum("Ignoring" in message for message in caplog.messages) == 4


class HalfReadableLog(InMemoryCoordinatorLog):
    def read_all(self, partition: int) -> Iterator[RecordBatch]:
        yield next(super().read_all(partition))
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)


def test_what_was_read_before_an_error_is_kept() -> None:
    world = World(HalfReadableLog(partition_count=1))
    for name in ("a", "b"):
        source = World(InMemoryCoordinatorLog(partition_count=1))
        source.lead_all()
        source.begin(name)
        world.log.append_batch(0, source.log.batches[0][0], 1)
    world.lead_all()
    assert [metadata.transactional_id for metadata in world.states.transactions] == ["a"]


@pytest.mark.parametrize(
    "error", [*APPEND_ERRORS, ErrorCode.INVALID_PRODUCER_EPOCH], ids=lambda error: ErrorCode(error).name
)
def test_what_the_log_refuses_has_not_happened(error: ErrorCode) -> None:
    world = World()
    world.lead_all()
    metadata = world.begin("a")
    world.log.error = error
    assert world.append("a", metadata.prepare_add_partitions([P0], START_MS)) == [APPEND_ERRORS.get(error, error)]
    assert (metadata.state, metadata.pending_state, metadata.topic_partitions) == (TransactionState.EMPTY, None, set())


def test_a_change_of_another_epoch_is_not_appended() -> None:
    world = World()
    world.lead_all(5)
    metadata = world.add("a")
    transit = metadata.prepare_increment_producer_epoch(500, None, START_MS)
    assert isinstance(transit, TransitMetadata)
    assert world.append("a", transit, epoch=4) == [ErrorCode.NOT_COORDINATOR]
    assert world.append("nobody", transit, epoch=5) == [ErrorCode.NOT_COORDINATOR]
    assert not world.log.batches


def test_memory_is_left_alone_when_the_partition_has_moved_meanwhile() -> None:
    world = World()
    world.lead_all()
    metadata = world.begin("a")
    partition = world.states.partition_for("a")
    world.log.hold = True
    answers = world.append("a", metadata.prepare_add_partitions([P0], START_MS))
    world.states.resign(partition)
    world.log.release()
    assert answers == [ErrorCode.NOT_COORDINATOR]
    assert metadata.state is TransactionState.EMPTY
    assert world.unloaded.count(partition) == 2  # an election drops what there may have been, too


def test_ids_expire_a_week_after_their_last_use_and_not_before() -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    world.lead_all()
    world.begin("a")
    world.clock.advance(WEEK_MS - 1)
    world.states.expire()
    assert isinstance(world.states.find("a"), Owned)
    world.clock.advance(1)
    world.states.expire()
    assert world.states.find("a") is None


def test_tombstones_fit_in_batches() -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    world.lead_all()
    for number in range(30):
        world.begin(f"id-{number:04}")
    before = len(world.log.batches[0])
    world.log.max_bytes = 300
    world.clock.advance(WEEK_MS)
    world.states.expire()
    written = world.log.batches[0][before:]
    assert len(written) > 1
    assert all(len(batch) <= 300 for batch in written)
    assert list(world.states.transactions) == []


@pytest.mark.parametrize("state", [TransactionState.ONGOING, TransactionState.PREPARE_ABORT])
def test_an_open_transaction_does_not_expire(state: TransactionState) -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    world.lead_all()
    world.begin("a").state = state
    world.clock.advance(10 * WEEK_MS)
    world.states.expire()
    assert isinstance(world.states.find("a"), Owned)


def test_ids_stay_when_their_tombstones_are_refused() -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    world.lead_all()
    metadata = world.begin("a")
    world.clock.advance(WEEK_MS)
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    world.states.expire()
    assert isinstance(world.states.find("a"), Owned)
    assert metadata.pending_state is None
    world.log.error = ErrorCode.NONE
    world.states.expire()
    assert world.states.find("a") is None


def test_no_tombstones_are_written_after_the_partition_was_lost_and_won_again() -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    world.lead_all()
    for number in range(2 * IMMEDIATE_STEPS):
        world.begin(f"id-{number:04}")
    before = len(world.log.batches[0])
    world.clock.advance(WEEK_MS)
    world.states.expire()
    world.states.elect(0, 2)
    world.timer.advance()
    assert len(world.log.batches[0]) == before
    assert len(list(world.states.transactions)) == 2 * IMMEDIATE_STEPS


def test_nothing_expires_without_a_log(caplog: pytest.LogCaptureFixture) -> None:
    world = World(InMemoryCoordinatorLog(partition_count=1))
    world.lead_all()
    world.begin("a")
    world.clock.advance(WEEK_MS)
    world.log.missing.add(0)
    with caplog.at_level(logging.WARNING):
        world.states.expire()
    assert "this broker has no log for it" in caplog.text


def test_an_observer_sees_each_change_that_is_in_the_log() -> None:
    world = World()
    world.lead_all()
    seen: list[tuple[str, TransactionState]] = []
    world.states.observer = lambda metadata: seen.append((metadata.transactional_id, metadata.state))
    metadata = world.add("id")
    metadata.producer_epoch = 0
    world.log.hold = True
    world.append("id", metadata.prepare_add_partitions([P0], START_MS))
    assert seen == []
    world.log.release()
    assert seen == [("id", TransactionState.ONGOING)]
    world.append("id", metadata.prepare_abort_or_commit(TransactionState.PREPARE_COMMIT, START_MS))
    world.log.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert seen == [("id", TransactionState.ONGOING)]
