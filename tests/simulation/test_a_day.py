"""A day in the life of a broker, in seconds: each job that waits for a time does its work, and at its time.

The intervals between two rounds of a job are Apache Kafka's defaults, and so are the times after which something is
over, except those of seven days: `SETTINGS` makes them hours. All scenarios share one broker and one day; when it is
over, nothing may be left of them.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import batches
from odradek.storage.disk.checkpoint_files import HIGH_WATERMARK_FILE, LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from tests.support.simulation.day import HOUR, MARGIN_MS, MINUTE, SECOND, Day
from tests.support.simulation.lone_broker import LoneBroker

SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "offsets.retention.minutes": "360",
    "transactional.id.expiration.ms": str(7 * HOUR),
    "log.roll.hours": "1",
    "log.retention.hours": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
}

END: Final = 26 * HOUR
"""Two hours more than a day: some times are a day, and begin after something else."""

# Apache Kafka's defaults
INITIAL_TASK_DELAY: Final = 30 * SECOND
RETENTION_CHECK: Final = 5 * MINUTE
FILE_DELETE_DELAY: Final = MINUTE
CHECKPOINT: Final = MINUTE
HIGH_WATERMARK_CHECKPOINT: Final = 5 * SECOND
CLEANER_BACKOFF: Final = 15 * SECOND
OFFSETS_RETENTION_CHECK: Final = 10 * MINUTE
PRODUCER_ID_CHECK: Final = 10 * MINUTE
TRANSACTION_ABORT_CHECK: Final = 10 * SECOND
TRANSACTIONAL_ID_CHECK: Final = HOUR
PRODUCER_ID_EXPIRATION: Final = 24 * HOUR
DELETE_RETENTION: Final = 24 * HOUR
CONNECTIONS_MAX_IDLE: Final = 10 * MINUTE
FETCH_SESSION_SLOTS: Final = 1_000
FETCH_SESSION_EVICTION: Final = 2 * MINUTE
INITIAL_REBALANCE_DELAY: Final = 3 * SECOND
QUOTA_WINDOWS: Final = 11  # of a second each: ten that are over, and the current one
SENSOR_CHECK: Final = 30 * SECOND

LIMITED: Final = "limited"
"""A client id with a quota of `QUOTA` bytes a second for Produce requests."""
QUOTA: Final = 10_000

Scenario = Callable[[Day], Coroutine[object, object, None]]
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(work: Scenario) -> Scenario:
    SCENARIOS[work.__name__] = work
    return work


# -- logs


@scenario
async def retention_deletes_old_segments(day: Day) -> None:
    """At the first check after retention.ms; the files go file.delete.delay.ms later, and the new start is stored."""
    await day.create_topic("kept-for-an-hour", retention_ms=HOUR)
    written_ms = day.now_ms
    await day.produce("kept-for-an-hour")
    log = day.log("kept-for-an-hour")

    async def is_deleted() -> bool:
        return log.log_start_offset == 1

    deleted_ms = day.next_round(written_ms + HOUR, RETENTION_CHECK, INITIAL_TASK_DELAY)
    await day.happens_at(deleted_ms, is_deleted)
    assert [name for name in day.files("kept-for-an-hour") if name.endswith(".log.deleted")]

    async def are_files_gone() -> bool:
        return not [name for name in day.files("kept-for-an-hour") if name.endswith(".deleted")]

    await day.happens_at(deleted_ms + FILE_DELETE_DELAY, are_files_gone)


@scenario
async def log_start_offsets_are_stored(day: Day) -> None:
    await day.create_topic("cut")
    for _ in range(2):
        await day.produce("cut")
    await day.until(day.next_round(day.now_ms, CHECKPOINT, INITIAL_TASK_DELAY) + 5 * SECOND)
    partition = {"partition_index": 0, "offset": 1}
    await day.ask(ApiKey.DELETE_RECORDS, 2, topics=[{"name": "cut", "partitions": [partition]}], timeout_ms=30_000)

    async def is_stored() -> bool:
        return day.checkpoint(LOG_START_OFFSET_FILE, "cut") == 1

    await day.happens_at(day.next_round(day.now_ms, CHECKPOINT, INITIAL_TASK_DELAY), is_stored)


@scenario
async def segments_are_rolled_and_recovery_points_stored(day: Day) -> None:
    """The first append after log.roll.hours begins a segment; the next checkpoint has its base as recovery point."""
    await day.create_topic("rolled")
    began_ms = day.now_ms
    rolled = 0
    while day.now_ms < 24 * HOUR:
        offset = await day.produce("rolled")
        logs = [int(name.removesuffix(".log")) for name in day.files("rolled") if name.endswith(".log")]
        if day.now_ms - began_ms > HOUR:
            assert max(logs) == offset, f"no new segment after {day.now_ms - began_ms} ms"
            began_ms = day.now_ms
            rolled += 1
            await day.until(day.next_round(day.now_ms, CHECKPOINT, INITIAL_TASK_DELAY) + 2 * SECOND)
            assert day.checkpoint(RECOVERY_POINT_FILE, "rolled") == offset
        await day.until(day.now_ms + 21 * MINUTE)
    assert rolled == 22  # every fourth append, 63 minutes after the first of the segment, with the waits above


@scenario
async def high_watermarks_are_stored(day: Day) -> None:
    await day.create_topic("watched")
    for hour in range(1, 24):
        await day.until(hour * HOUR + 1)
        end = await day.produce("watched") + 1
        await day.until(day.now_ms + HIGH_WATERMARK_CHECKPOINT + SECOND)
        assert day.checkpoint(HIGH_WATERMARK_FILE, "watched") == end


@scenario
async def compaction_removes_overwritten_values_and_then_the_tombstone(day: Day) -> None:
    """A value goes with the first round after its segment is closed, its tombstone delete.retention.ms later."""
    topic = "compacted"
    await day.create_topic(topic, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for value in (b"old", None):
        await day.produce(topic, value, b"gone")
    await day.until(day.now_ms + HOUR + MINUTE)
    await day.produce(topic, b"newer", b"a")  # closes the first segment
    await day.until(day.now_ms + CLEANER_BACKOFF + 3 * SECOND)
    horizon_ms = day.now_ms + DELETE_RETENTION
    assert _values(day, topic) == [(b"gone", None), (b"a", b"newer")]
    while day.now_ms < horizon_ms - 2 * HOUR:
        await day.until(day.now_ms + 2 * HOUR)
        await day.produce(topic, b"newer", b"a")
    await day.until(horizon_ms - MINUTE)
    assert (b"gone", None) in _values(day, topic)
    await day.until(horizon_ms + MINUTE)
    await day.produce(topic, b"newer", b"a")  # the log is dirty again: the next round cleans it
    await day.until(day.now_ms + CLEANER_BACKOFF + 3 * SECOND)
    assert (b"gone", None) not in _values(day, topic)


def _values(day: Day, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    log = day.log(topic)
    offset, values = log.log_start_offset, []
    while offset < log.log_end_offset:
        fetched = log.read(offset, 10_000, FetchIsolation.LOG_END, min_one_message=True)
        assert isinstance(fetched.records, FileRegion)
        for batch in batches(memoryview(fetched.records.read())):
            offset = batch.next_offset
            values += [(record.key, record.value) for record in batch.records()]
    return values


# -- producers and transactions


@scenario
async def producer_ids_expire(day: Day) -> None:
    await day.create_topic("idempotent")
    given = await day.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=0)
    written_ms = day.now_ms
    await day.produce("idempotent", producer_id=given.producer_id, producer_epoch=0, base_sequence=0)

    async def is_forgotten() -> bool:
        topics = [{"name": "idempotent", "partition_indexes": [0]}]
        answer = await day.ask(ApiKey.DESCRIBE_PRODUCERS, 0, topics=topics)
        return not answer.topics[0].partitions[0].active_producers

    await day.until(written_ms + 23 * HOUR)
    expired_ms = day.next_round(written_ms + PRODUCER_ID_EXPIRATION, PRODUCER_ID_CHECK, INITIAL_TASK_DELAY)
    await day.happens_at(expired_ms, is_forgotten)


@scenario
async def transactions_that_take_too_long_are_aborted_and_their_ids_expire(day: Day) -> None:
    await day.create_topic("transactional")
    given = await _init_producer(day, "forgetful")
    assert given.error_code == 0, given
    who = {"transactional_id": "forgetful", "producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    fields = {**who, "topics": [{"name": "transactional", "partitions": [0]}]}
    begun_ms = day.now_ms
    await day.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, **{f"v3_and_below_{name}": value for name, value in fields.items()})
    await day.produce(
        "transactional",
        transactional_id="forgetful",
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    log = day.log("transactional")

    async def is_over() -> bool:
        return log.last_stable_offset == log.log_end_offset == 2

    aborted_ms = day.next_round(begun_ms + MINUTE, TRANSACTION_ABORT_CHECK)
    await day.happens_at(aborted_ms, is_over)
    ended_ms = aborted_ms

    async def is_forgotten() -> bool:
        answer = await day.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["forgetful"])
        return bool(answer.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    await day.happens_at(day.next_round(ended_ms + 7 * HOUR, TRANSACTIONAL_ID_CHECK), is_forgotten)


async def _init_producer(day: Day, transactional_id: str) -> object:
    """Ask until `__transaction_state` is there."""
    while True:
        await day.ask(ApiKey.FIND_COORDINATOR, 3, key=transactional_id, key_type=1)
        given = await day.ask(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=MINUTE
        )
        if given.error_code == 0:
            return given
        await asyncio.sleep(0.1)


# -- groups


@scenario
async def a_member_that_is_silent_leaves_and_the_offsets_of_its_group_expire(day: Day) -> None:
    await day.create_topic("consumed")
    await _coordinator(day, "silent")
    peer = day.broker.connect()
    asked_ms = day.now_ms
    joined = await day.join("silent", peer, session_timeout_ms=45 * SECOND, rebalance_timeout_ms=5 * MINUTE)
    assert INITIAL_REBALANCE_DELAY <= day.now_ms - asked_ms <= INITIAL_REBALANCE_DELAY + SECOND
    await day.sync("silent", joined, peer)
    member = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    await day.commit("silent", "consumed", 7, member=member)
    heard_ms = day.now_ms

    async def is_empty() -> bool:
        return await day.group_state("silent") == "Empty"

    await day.happens_at(heard_ms + 45 * SECOND, is_empty)
    emptied_ms = heard_ms + 45 * SECOND

    async def is_gone() -> bool:
        return await day.group_state("silent") == "Dead"

    assert await day.committed("silent", "consumed") == 7
    await day.happens_at(day.next_round(emptied_ms + 6 * HOUR, OFFSETS_RETENTION_CHECK), is_gone)
    assert await day.committed("silent", "consumed") == -1


@scenario
async def a_member_that_lives_all_day_keeps_its_offsets(day: Day) -> None:
    await day.create_topic("followed")
    await _coordinator(day, "faithful")
    peer = day.broker.connect()
    joined = await day.join("faithful", peer, session_timeout_ms=45 * SECOND, rebalance_timeout_ms=5 * MINUTE)
    await day.sync("faithful", joined, peer)
    member = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    await day.commit("faithful", "followed", 3, member=member)
    while day.now_ms < 24 * HOUR:
        await day.until(day.now_ms + 44 * SECOND)
        answer = await day.ask(
            ApiKey.HEARTBEAT,
            3,
            peer,
            group_id="faithful",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
        )
        assert answer.error_code == 0
    assert await day.committed("faithful", "followed") == 3
    peer.close()


@scenario
async def offsets_with_a_retention_of_their_own_expire(day: Day) -> None:
    """As commits of versions 2 to 4 ask for."""
    await day.create_topic("polled")
    await _coordinator(day, "simple")
    committed_ms = day.now_ms
    await day.commit("simple", "polled", 5, retention_ms=HOUR)

    async def is_gone() -> bool:
        return await day.committed("simple", "polled") == -1

    await day.happens_at(day.next_round(committed_ms + HOUR, OFFSETS_RETENTION_CHECK), is_gone)


@scenario
async def a_member_that_does_not_join_again_is_left_behind(day: Day) -> None:
    """The rebalance waits for the rebalance time-out of the members that are known."""
    await _coordinator(day, "slow")
    slow, quick = day.broker.connect(), day.broker.connect()
    fields = {"session_timeout_ms": 30 * MINUTE, "rebalance_timeout_ms": 4 * MINUTE}
    joined = await day.join("slow", slow, **fields)
    await day.sync("slow", joined, slow)
    asked_ms = day.now_ms
    second = await day.join("slow", quick, **fields)
    assert 0 <= day.now_ms - asked_ms - 4 * MINUTE <= SECOND
    assert second.error_code == 0
    assert [member.member_id for member in second.members] == [second.member_id]


async def _coordinator(day: Day, group: str) -> None:
    """Ask until `__consumer_offsets` is there and loaded."""
    while (await day.ask(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0)).error_code:
        await asyncio.sleep(0.1)
    while (await day.ask(ApiKey.DESCRIBE_GROUPS, 4, groups=[group])).groups[0].error_code:
        await asyncio.sleep(0.1)


# -- connections and fetches


@scenario
async def idle_connections_are_closed(day: Day) -> None:
    idle, busy = day.broker.connect(), day.broker.connect()
    await day.ask(ApiKey.API_VERSIONS, 3, idle, client_software_name="a", client_software_version="1")
    active_ms = day.broker.now_ms
    while day.now_ms < 24 * HOUR:
        await day.until(day.now_ms + CONNECTIONS_MAX_IDLE - SECOND)
        await day.ask(ApiKey.API_VERSIONS, 3, busy, client_software_name="a", client_software_version="1")
    assert idle.closed_ms is not None
    assert 0 <= idle.closed_ms - active_ms - CONNECTIONS_MAX_IDLE <= 10
    assert busy.closed_ms is None
    busy.close()


@scenario
async def fetch_sessions_that_are_not_used_make_room(day: Day) -> None:
    """A full cache refuses a session until one of the others has not been used for its eviction time."""
    await day.create_topic("fetched")
    await day.until(2 * HOUR)
    for _ in range(FETCH_SESSION_SLOTS):
        assert await _new_session(day)
    filled_ms = day.now_ms
    await day.until(filled_ms + FETCH_SESSION_EVICTION - SECOND)
    assert await _new_session(day) == 0
    await day.until(filled_ms + FETCH_SESSION_EVICTION + SECOND)
    assert await _new_session(day)


async def _new_session(day: Day) -> int:
    answer = await _fetch(day, "fetched", 0, max_wait_ms=0, session_epoch=0)
    return int(answer.session_id)


async def _fetch(day: Day, topic: str, offset: int, **fields: object) -> object:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000}
    topics = [{"topic": topic, "partitions": [partition]}]
    return await day.ask(ApiKey.FETCH, 12, min_bytes=1, topics=topics, **fields)


@scenario
async def a_fetch_waits_for_records_or_its_time(day: Day) -> None:
    await day.create_topic("awaited")
    asked_ms = day.now_ms
    await _fetch(day, "awaited", 0, max_wait_ms=2 * MINUTE)
    assert 0 <= day.now_ms - asked_ms - 2 * MINUTE <= 10
    asked_ms = day.now_ms
    waiting = asyncio.ensure_future(_fetch(day, "awaited", 0, max_wait_ms=2 * MINUTE))
    await day.until(asked_ms + 30 * SECOND)
    await day.produce("awaited")
    await waiting
    assert day.now_ms - asked_ms <= 31 * SECOND


# -- quotas


@scenario
async def a_quota_counts_the_last_windows_and_a_silent_client_is_forgotten(day: Day) -> None:
    await day.create_topic("written-slowly")

    async def is_forgotten() -> bool:
        return LIMITED not in [name for one in day.broker.services.quotas.produce.sensors for name in one.tags]

    for hour in (1, 3, 18):
        await day.until(hour * HOUR)
        assert await is_forgotten()
        peer = day.broker.connect()
        produce = partial(day.produce_to_be_throttled, "written-slowly", peer, LIMITED)
        # Twice what the windows may have: as much time again has to pass, and the connection is mute for it.
        took_ms, throttle_ms = await produce(20 * QUOTA)
        assert took_ms < SECOND
        assert throttle_ms == pytest.approx(10 * SECOND, rel=0.03)
        muted_ms, _ = await produce(1)
        assert 0 <= took_ms + muted_ms - throttle_ms <= SECOND
        await day.until(day.now_ms + QUOTA_WINDOWS * SECOND)
        assert (await produce(9 * QUOTA))[1] == 0, "nothing of the first produce counts"
        assert (await produce(3 * QUOTA))[1] > 0
        peer.close()
        await day.happens_at(day.now_ms + HOUR, is_forgotten, SENSOR_CHECK + MARGIN_MS)


# -- what is left


@scenario
async def nothing_is_left_of_clients_that_come_and_go(day: Day) -> None:
    """Each quarter of an hour the same: connect, produce, fetch, commit, join, leave. Objects do not become more."""
    await day.create_topic("visited", retention_ms=HOUR)
    await _coordinator(day, "visitors")
    counts: dict[int, Counter[str]] = {}
    for quarter in range(1, 4 * 24):
        await day.until(quarter * HOUR // 4)
        await _visit(day)
        if quarter in (60, 92):  # both in the afternoon, with nothing but this going on
            await day.until(day.now_ms + 14 * MINUTE)
            counts[quarter] = _objects()
    grown = {name: (count, counts[60][name]) for name, count in counts[92].items() if count > counts[60][name]}
    assert not grown, f"more after eight hours, and before: {grown}"


async def _visit(day: Day) -> None:
    peer = day.broker.connect()
    await day.produce("visited")
    await _fetch(day, "visited", day.log("visited").log_start_offset, max_wait_ms=500)
    joined = await day.join("visitors", peer, session_timeout_ms=45 * SECOND, rebalance_timeout_ms=MINUTE)
    await day.sync("visitors", joined, peer)
    member = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    await day.commit("visitors", "visited", 1, member=member)
    members = [{"member_id": joined.member_id}]
    left = await day.ask(ApiKey.LEAVE_GROUP, 3, peer, group_id="visitors", members=members)
    assert left.error_code == 0
    peer.close()


def _objects() -> Counter[str]:
    """Objects of the broker by class. The module of a class may be no text: a metaclass written in C may hide it."""
    gc.collect()
    classes = (type(found) for found in gc.get_objects())
    return Counter(cls.__qualname__ for cls in classes if str(cls.__module__).startswith("odradek."))


class Lived:
    """The outcome of a day."""

    def __init__(self, directory: Path) -> None:
        self.errors: dict[str, BaseException] = {}
        self._broker = broker = LoneBroker(directory, SETTINGS)
        broker.run(self._live(Day(broker, directory)), END + HOUR)
        self.connections = len(broker.sockets.connections)
        broker.stop()

    async def _live(self, day: Day) -> None:
        await day.create_topic("first")  # some work begins with the first partition
        await day.set_quota(LIMITED, QUOTA)  # the check for silent clients begins with the first quota
        await day.until(day.now_ms + SECOND)
        self.before = day.waiting()
        tasks = {asyncio.ensure_future(work(day)): name for name, work in SCENARIOS.items()}
        await asyncio.wait(tasks)
        for task, name in tasks.items():
            error = task.exception()
            if error is not None:
                self.errors[name] = error
        assert day.now_ms <= END
        topics = await day.ask(ApiKey.METADATA, 9, topics=None)
        await day.delete_topics(*(topic.name for topic in topics.topics))
        await day.until(END + CONNECTIONS_MAX_IDLE)  # the files of deleted logs go
        self.after = day.waiting()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return Lived(tmp_path_factory.mktemp("day") / "data")


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(lived: Lived, name: str) -> None:
    if name in lived.errors:
        raise lived.errors[name]


def test_nothing_is_left_waiting(lived: Lived) -> None:
    """In the timer (delayed operations wait there, too) and among the tasks of the event loop."""
    assert lived.after == lived.before
    assert lived.connections == 0
