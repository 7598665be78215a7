from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.group_metadata_manager import TOMBSTONES_A_STEP, GroupMetadataManager
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.group.state.group_states import GroupState
from odradek.coordinator.group.state.records import offset_commit_key
from odradek.coordinator.ports import TransactionalProducer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import AnyBatch, RecordBatch
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import IMMEDIATE_STEPS, Wait, run_through
from odradek.timer.system_timer import SystemTimer
from tests.support.call_count import counted_calls
from tests.support.in_process.coordinator_log import InMemoryCoordinatorLog

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)
E = ErrorCode


class World:
    def __init__(self, config: GroupConfig | None = None) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.log = InMemoryCoordinatorLog(partition_count=1)
        self.gone: list[str] = []
        self.loaded: list[str] = []
        self.groups = GroupMetadataManager(
            config=config or GroupConfig(),
            log=self.log,
            clock=self.clock,
            timer=self.timer,
            on_loaded=lambda group: self.loaded.append(group.group_id),
            on_gone=lambda group: self.gone.append(group.group_id),
        )
        self.groups.is_active = True
        self.groups.ownership.elect(0, 0)

    def commit(self, group: GroupMetadata, key: TopicPartition = T0, offset: int = 5, metadata: str = "") -> ErrorCode:
        outcome: dict[TopicPartition, ErrorCode] = {}
        value = OffsetAndMetadata(offset=offset, metadata=metadata, commit_timestamp_ms=self.clock.time_ms())
        self.store(group, {key: value}, outcome.update)
        return outcome[key]

    def store(
        self,
        group: GroupMetadata,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        done: Callable[[dict[TopicPartition, ErrorCode]], None],
        producer: TransactionalProducer | None = None,
    ) -> None:
        records = run_through(self.groups.offset_records(group.group_id, offsets))
        self.groups.store_offsets(group, offsets, done, producer, records=records)


@pytest.mark.parametrize(
    ("append_error", "told"),
    [
        (E.NETWORK_EXCEPTION, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.RECORD_LIST_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.INVALID_FETCH_SIZE, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.REQUEST_TIMED_OUT, E.REQUEST_TIMED_OUT),
        (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
    ],
)
def test_errors_of_offset_appends_are_told_as_kafka_tells_them(append_error: ErrorCode, told: ErrorCode) -> None:
    world = World()
    group = world.groups.get_or_create("g")
    world.log.error = append_error
    assert world.commit(group) == told
    assert not group.offsets


@pytest.mark.parametrize(
    ("append_error", "told"),
    [
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.REQUEST_TIMED_OUT, E.REBALANCE_IN_PROGRESS),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.RECORD_LIST_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.INVALID_FETCH_SIZE, E.UNKNOWN_SERVER_ERROR),
        (E.CORRUPT_MESSAGE, E.CORRUPT_MESSAGE),
    ],
)
def test_errors_of_group_appends_are_told_as_kafka_tells_them(append_error: ErrorCode, told: ErrorCode) -> None:
    world = World()
    world.log.error = append_error
    errors: list[ErrorCode] = []
    world.groups.store_group(world.groups.get_or_create("g"), {}, errors.append)
    assert errors == [told]


def test_without_a_log_nobody_coordinates() -> None:
    world = World()
    world.log.missing.add(0)
    group = world.groups.get_or_create("g")
    errors: list[ErrorCode] = []
    world.groups.store_group(group, {}, errors.append)
    assert errors == [E.NOT_COORDINATOR]
    assert world.commit(group) == E.NOT_COORDINATOR
    assert world.commit(group, metadata="x" * 4097) == E.OFFSET_METADATA_TOO_LARGE


def test_metadata_is_counted_in_utf16_units() -> None:
    groups = World(GroupConfig(offset_metadata_max_bytes=4)).groups
    assert groups.fits("äöüß")
    assert not groups.fits("äöüß!")
    assert groups.fits("\U0001f600\U0001f600")
    assert not groups.fits("\U0001f600\U0001f600!")


def test_the_outcome_of_a_commit_after_the_group_died_does_not_revive_it() -> None:
    world = World()
    group = world.groups.get_or_create("g")
    world.log.hold = True
    outcome: dict[TopicPartition, ErrorCode] = {}
    value = OffsetAndMetadata(offset=5, commit_timestamp_ms=0)
    world.store(group, {T0: value}, outcome.update)
    world.groups.ownership.resign(0, 1)
    assert world.gone == ["g"]
    world.log.release()
    assert outcome == {T0: E.NONE}
    assert len(group.offsets) == 0


def test_deleting_writes_a_tombstone_for_each_offset_and_one_for_a_group_that_was_written() -> None:
    world = World()
    group = world.groups.get_or_create("g")
    world.commit(group)
    world.commit(group, T1)
    group.generation_id = 1
    world.groups.delete(group)
    (tombstones,) = list(world.log.read_all(0))[2:]
    assert [record.value for record in tombstones.records()] == [None, None, None]
    assert world.groups.get("g") is None
    assert world.gone == ["g"]
    world.groups.ownership.resign(0, 1)
    world.groups.ownership.elect(0, 2)
    assert not list(world.groups.groups)


def test_tombstones_do_not_wait_for_replicas_and_may_fail() -> None:
    world = World()
    group = world.groups.get_or_create("g")
    world.commit(group)
    world.log.hold = True
    world.log.error = E.NOT_ENOUGH_REPLICAS
    world.groups.delete(group)
    assert world.groups.get("g") is None
    assert world.log.held_count == 0


def test_a_sweep_looks_at_every_group_however_many() -> None:
    world = World(GroupConfig(offsets_retention_ms=100))
    for index in range(500):
        world.commit(world.groups.get_or_create(f"g{index}"))
    world.clock.advance(100)
    world.groups.expire_offsets()
    assert len(list(world.groups.groups)) > 0
    world.timer.advance()
    assert not list(world.groups.groups)


def test_a_sweep_leaves_groups_alone_that_have_moved_away_meanwhile() -> None:
    world = World(GroupConfig(offsets_retention_ms=100))
    for index in range(500):
        world.commit(world.groups.get_or_create(f"g{index}"))
    appended = sum(len(list(batch.records())) for batch in world.log.read_all(0))
    world.clock.advance(100)
    world.groups.expire_offsets()
    world.groups.ownership.resign(0, 1)
    swept = sum(len(list(batch.records())) for batch in world.log.read_all(0)) - appended
    world.timer.advance()
    assert sum(len(list(batch.records())) for batch in world.log.read_all(0)) == appended + swept


def test_a_marker_reaches_the_groups_of_its_producer_in_its_partition() -> None:
    world = World()
    producer = TransactionalProducer(7, 0)
    groups = [world.groups.get_or_create(name) for name in ("g", "h")]
    value = OffsetAndMetadata(offset=5, commit_timestamp_ms=0)
    for group in groups:
        world.store(group, {T0: value}, lambda outcome: None, producer)
    world.groups.complete_transaction(7, [3], committed=True)
    assert [group.offsets.get(T0) for group in groups] == [None, None]
    world.groups.complete_transaction(7, [0], committed=True)
    assert [group.offsets.get(T0) for group in groups] == [value, value]
    world.groups.complete_transaction(7, [0], committed=False)
    assert [group.offsets.get(T0) for group in groups] == [value, value]


def test_an_open_transaction_survives_a_move_of_the_partition() -> None:
    world = World()
    producer = TransactionalProducer(7, 0)
    value = OffsetAndMetadata(offset=5, commit_timestamp_ms=0)
    group = world.groups.get_or_create("g")
    world.store(group, {T0: value}, lambda outcome: None, producer)
    world.groups.ownership.resign(0, 1)
    world.groups.ownership.elect(0, 2)
    assert world.loaded == ["g"]
    reloaded = world.groups.get("g")
    assert reloaded is not None
    assert reloaded is not group
    assert reloaded.offsets.is_unstable(T0)
    world.groups.complete_transaction(7, [0], committed=True)
    assert reloaded.offsets.get(T0) == value
    assert reloaded.state is GroupState.EMPTY


@pytest.mark.parametrize("commit", [True, False])
def test_marker_comes_when_the_log_is_read_and_its_groups_are_not_loaded_yet(commit: bool) -> None:
    """It is not seen in the log any more, and there is nobody yet to hear of it."""
    world = World()
    producer = TransactionalProducer(7, 0)
    group = world.groups.get_or_create("g")
    value = OffsetAndMetadata(offset=5, commit_timestamp_ms=0)
    world.store(group, {T0: value}, lambda outcome: None, producer)
    for number in range(IMMEDIATE_STEPS // 2):  # a step to read each, and another to make a group of it
        world.commit(world.groups.get_or_create(f"other-{number}"))
    world.groups.ownership.resign(0, 1)
    world.groups.ownership.elect(0, 2)
    assert world.groups.is_loading("g")
    world.log.append_marker(0, producer, commit=commit)
    world.groups.complete_transaction(producer.producer_id, [0], committed=commit)
    world.timer.advance()
    assert not world.groups.is_loading("g")
    loaded = world.groups.get("g")
    assert loaded is not None
    assert not loaded.offsets.is_unstable(T0)
    assert loaded.offsets.get(T0) == (value if commit else None)


def records_of(world: World) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for batch in batches_of(world) for record in batch.records()]


def batches_of(world: World) -> list[AnyBatch]:
    return [batch for batch in world.log.read_all(0) if not isinstance(batch, Wait)]


def test_offsets_of_a_deleted_topic_are_gone_at_once_and_their_tombstones_follow_in_slices() -> None:
    world = World()
    groups = [world.groups.get_or_create(f"g{number}") for number in range(2 * IMMEDIATE_STEPS)]
    for group in groups:
        world.commit(group, T0)
        world.commit(group, U0)
    written = len(records_of(world))
    world.groups.forget_partitions([T0, T1])
    assert all(group.offsets.get(T0) is None and group.offsets.get(U0) is not None for group in groups)
    assert len(records_of(world)) < written + len(groups)
    world.timer.advance()
    tombstones = records_of(world)[written:]
    assert tombstones == [(offset_commit_key(group.group_id, T0), None) for group in groups]


def test_a_group_without_an_offset_of_a_deleted_topic_costs_a_few_calls() -> None:
    """All groups of the broker are asked in one turn of the event loop."""
    world = World()
    calls = []
    for count in (100, 200):
        for number in range(count):
            world.commit(world.groups.get_or_create(f"g{number}"), U0)
        with counted_calls() as counted:
            world.groups.forget_partitions([T0, T1])
        calls.append(counted.calls)
    assert calls[1] - calls[0] <= 3 * 100


def test_a_deleted_topic_takes_groups_without_offsets_with_it() -> None:
    world = World()
    world.groups.get_or_create("never committed")
    world.commit(world.groups.get_or_create("committed"), U0)
    world.groups.forget_partitions([T0])
    world.timer.advance()
    assert [group.group_id for group in world.groups.groups] == ["committed"]


def test_what_is_committed_after_the_topic_was_made_anew_gets_no_tombstone() -> None:
    world = World()
    groups = [world.groups.get_or_create(f"g{number}") for number in range(2 * IMMEDIATE_STEPS)]
    for group in groups:
        world.commit(group, T0)
    world.groups.forget_partitions([T0])
    world.commit(groups[-1], T0, 7)
    world.timer.advance()
    last = dict(records_of(world))
    assert last[offset_commit_key(groups[-1].group_id, T0)] is not None
    assert last[offset_commit_key(groups[-2].group_id, T0)] is None
    found = groups[-1].offsets.get(T0)
    assert found is not None
    assert found.offset == 7


def test_no_tombstones_are_written_after_the_partition_was_lost_and_won_again() -> None:
    world = World()
    for number in range(2 * IMMEDIATE_STEPS):
        world.commit(world.groups.get_or_create(f"g{number}"))
    world.groups.forget_partitions([T0])
    written = len(records_of(world))
    world.groups.ownership.resign(0, 1)
    world.groups.ownership.elect(0, 2)
    world.timer.advance()
    assert len(records_of(world)) == written


def test_tombstones_of_a_large_group_are_written_in_steps() -> None:
    world = World()
    group = world.groups.get_or_create("g")
    keys = [TopicPartition("t", index) for index in range(2 * TOMBSTONES_A_STEP + 10)]
    for key in keys:
        world.commit(group, key)
    before = len(batches_of(world))
    world.groups.delete(group)
    world.timer.advance()
    written = [[record.key for record in batch.records()] for batch in batches_of(world)[before:]]
    assert [len(batch) for batch in written] == [TOMBSTONES_A_STEP, TOMBSTONES_A_STEP, 10]
    assert [key for batch in written for key in batch] == [offset_commit_key("g", key) for key in keys]


def test_a_dropped_group_is_not_written_over_the_loaded_one() -> None:
    world = World()
    for number in range(2 * IMMEDIATE_STEPS):
        world.commit(world.groups.get_or_create(f"g{number}"))
    dropped = world.groups.get(f"g{2 * IMMEDIATE_STEPS - 1}")
    assert dropped is not None
    world.groups.ownership.resign(0, 1)
    assert not dropped.is_dead
    written = len(records_of(world))
    answers: list[ErrorCode] = []
    world.groups.store_group(dropped, {}, answers.append)
    assert answers == [E.NOT_COORDINATOR]
    assert world.commit(dropped, T1) == E.NOT_COORDINATOR
    assert len(records_of(world)) == written


def test_dropped_groups_are_dead_before_the_log_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    dropped = [world.groups.get_or_create(f"g{number}") for number in range(10 * IMMEDIATE_STEPS)]
    for group in dropped:
        world.commit(group)
    world.groups.ownership.resign(0, 1)
    assert not dropped[-1].is_dead
    seen: list[bool] = []
    read_all = world.log.read_all

    def read(partition: int) -> Iterator[RecordBatch]:
        seen.append(all(group.is_dead for group in dropped))
        return read_all(partition)

    monkeypatch.setattr(world.log, "read_all", read)
    world.groups.ownership.elect(0, 2)
    while world.groups.is_loading("g0"):
        world.timer.advance()
    assert seen == [True]
    assert world.gone == [group.group_id for group in dropped]
    assert world.groups.get("g0") is not dropped[0]


def test_a_deleted_group_has_its_tombstones_before_a_sweep_is_over() -> None:
    world = World()
    for number in range(2 * IMMEDIATE_STEPS):
        world.commit(world.groups.get_or_create(f"g{number}"))
    world.groups.expire_offsets()
    assert world.timer.size == 1, "the sweep goes on in the next slice"
    group = world.groups.get("g0")
    assert group is not None
    world.groups.delete(group)
    assert world.groups.get("g0") is None
    assert records_of(world)[-1] == (offset_commit_key("g0", T0), None)


def test_groups_that_moved_away_are_answered_before_a_sweep_is_over() -> None:
    world = World()
    for number in range(2 * IMMEDIATE_STEPS):
        world.commit(world.groups.get_or_create(f"g{number}"))
    world.groups.expire_offsets()
    assert world.timer.size == 1, "the sweep goes on in the next slice"
    world.groups.ownership.resign(0, 1)
    assert world.gone[:IMMEDIATE_STEPS] == [f"g{number}" for number in range(IMMEDIATE_STEPS)]


def test_groups_of_other_partitions_are_not_unloaded() -> None:
    world = World()
    world.log.partition_count = 2
    world.groups.ownership.elect(1, 0)
    groups = [world.groups.get_or_create(f"g{number}") for number in range(20)]
    world.groups.ownership.resign(1, 1)
    kept = [group for group in groups if world.groups.partition_for(group.group_id) == 0]
    assert 0 < len(kept) < len(groups)
    assert list(world.groups.groups) == kept
    assert [group.is_dead for group in groups] == [group not in kept for group in groups]
