from __future__ import annotations

import asyncio
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

import pytest

from odradek.broker.fetch.fetch_session import PartitionFetch
from odradek.broker.fetch.results import FetchParams
from odradek.broker.replication.copied_records import SLICE_BATCHES
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.records.control import ControlRecordType
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.append_info import AppendOrigin
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool, append, batch, marker
from tests.support.in_process.replication.following import FOLLOWER_ID, LEADER_ID, Following, bytes_of, error_in, honest
from tests.support.in_process.replication.replicas import TP, fetch_through, offsets_of

OTHER = TopicPartition("t", 1)
BACKOFF_MS = 1_000


def answering(code: int, *partitions: int) -> Callable[[Request, Response], Response]:
    """Fetches are answered with an error on these partitions."""

    def change(request: Request, response: Response) -> Response:
        return error_in(response, code, partitions) if isinstance(response, FetchResponse) else response

    return change


# Fetching


@async_test
async def test_the_follower_gets_the_bytes_of_the_leader(following: Following) -> None:
    following.lead(epoch=3)
    following.append(b"a", b"b")
    await following.turns()
    following.append(b"c")
    await following.turns()
    assert following.log().log_end_offset == 3
    assert bytes_of(following.log()) == bytes_of(following.leader_log())
    assert [tuple(entry) for entry in following.log().state.leader_epochs.entries] == [(3, 0)]


@async_test
async def test_a_fetch_says_where_the_log_ends_and_under_which_epoch(following: Following) -> None:
    following.lead(epoch=3)
    following.append(b"a", b"b")
    await following.turns()
    first, *_, last = following.link.fetches
    (asked,) = first.topics[0].partitions
    assert (asked.fetch_offset, asked.current_leader_epoch, asked.last_fetched_epoch) == (0, 3, -1)
    (asked,) = last.topics[0].partitions
    assert (asked.fetch_offset, asked.current_leader_epoch, asked.last_fetched_epoch) == (2, 3, 3)
    assert (last.replica_state.replica_id, last.replica_state.replica_epoch) == (FOLLOWER_ID, 77)
    assert {version for _, version in following.link.requests} == {17}


@async_test
async def test_high_watermark_follows_one_fetch_later(following: Following) -> None:
    following.lead()
    following.append(b"a")
    await following.turns()
    assert (following.leader_log().high_watermark, following.log().high_watermark) == (1, 0)
    await following.advance(500)
    assert following.log().high_watermark == 1


@async_test
async def test_high_watermark_is_never_beyond_the_own_log_end(following: Following) -> None:
    following.tell_leader()
    following.append(b"a", b"b", b"c")
    following.leader.fetch(3, replica_id=FOLLOWER_ID)  # a follower that has everything

    def one_batch(request: Request, response: Response) -> Response:
        assert isinstance(response, FetchResponse)
        (data,) = response.responses[0].partitions
        assert isinstance(data.records, bytes | memoryview)
        data.records = data.records[: len(batch(b"a"))]
        following.link.change = lambda request, response: error_in(response, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # type: ignore[arg-type]
        return response

    following.tell_follower()
    following.link.change = one_batch
    await following.turns()
    assert (following.leader_log().high_watermark, following.log().high_watermark) == (3, 1)


@async_test
async def test_high_watermark_is_the_smallest_end_of_the_in_sync_replicas(following: Following) -> None:
    replicas = [LEADER_ID, FOLLOWER_ID, 2]
    following.leader.lead(replicas=replicas)
    following.append(*[b"%d" % number for number in range(5)])
    following.follower.state(TP, leader=LEADER_ID, replicas=replicas)
    await following.turns()
    following.append(b"5", b"6")
    await following.turns()  # the follower's next fetch is at 7
    following.link.failure = OSError("cut")
    await following.advance(500)
    following.append(b"7")
    following.leader.fetch(5, replica_id=2)
    assert following.leader_log().log_end_offset == 8
    assert following.log().log_end_offset == 7
    assert following.leader_log().high_watermark == 5
    (read,) = following.leader.fetch(4)
    assert offsets_of(read) == [4]
    assert not following.leader.fetch(5)[0].size_in_bytes


@async_test
async def test_log_start_follows_the_leaders(following: Following) -> None:
    following.lead()
    following.append(b"a", b"b")
    await following.turns()
    await following.advance(500)
    following.leader.manager.delete_records(0, {TP: 2}, lambda results: None)
    await following.advance(500)
    assert following.log().log_start_offset == 2


@async_test
async def test_a_log_that_begins_inside_a_batch_is_followed(following: Following) -> None:
    following.tell_leader()
    following.leader.append(batch(b"a", b"b", b"c"))
    following.leader.fetch(3, replica_id=FOLLOWER_ID)
    following.leader.manager.delete_records(0, {TP: 1}, lambda results: None)
    following.tell_follower()
    await following.turns()
    assert (following.log().log_start_offset, following.log().log_end_offset) == (1, 3)
    assert bytes_of(following.log()) == bytes_of(following.leader_log())


@async_test
async def test_a_reader_of_the_follower_is_woken_by_the_high_watermark(following: Following) -> None:
    following.lead()
    following.append(b"a")
    await following.turns()
    answers: list[object] = []
    fetch = PartitionFetch(TP.topic, ZERO_UUID, TP.partition, fetch_offset=0, max_bytes=1_000)
    params = FetchParams(
        replica_id=-1,
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1_000,
        isolation=FetchIsolation.HIGH_WATERMARK,
        leader_only=False,
        hard_max_bytes=False,
    )
    fetch_through(following.follower.manager.reads, params, [fetch], answers.extend)
    assert answers == []
    following.append(b"b")
    await following.turns()
    assert len(answers) == 1


@async_test
async def test_producers_and_transactions_are_followed(following: Following) -> None:
    following.lead()
    producer = {"producer_id": 5, "producer_epoch": 1, "is_transactional": True}
    following.leader.append(batch(b"a", base_sequence=0, **producer))
    following.leader.append(batch(b"b", base_sequence=1, **producer))
    await following.turns()
    assert following.log().first_unstable_offset == 0
    abort = marker(ControlRecordType.ABORT, producer_id=5, producer_epoch=1)
    following.leader_log().append_as_leader(abort, 0, origin=AppendOrigin.COORDINATOR)
    following.append(b"c")
    await following.turns()
    await following.advance(500)
    own, leaders = following.log(), following.leader_log()
    assert own.active_producers()[5].last_seq == leaders.active_producers()[5].last_seq == 1
    assert own.last_stable_offset == leaders.last_stable_offset == 4
    found = own.read(0, 1_000, FetchIsolation.TXN_COMMITTED, min_one_message=True)
    assert [(txn.producer_id, txn.first_offset) for txn in found.aborted_transactions or ()] == [(5, 0)]


@async_test
async def test_many_small_batches_leave_others_their_turn(following: Following) -> None:
    following.tell_leader()
    following.append(*([b"x"] * (3 * SLICE_BATCHES)))
    following.tell_follower()
    ends = []
    while following.log().log_end_offset < 3 * SLICE_BATCHES:
        await asyncio.sleep(0)
        ends.append(following.log().log_end_offset)
    assert {SLICE_BATCHES, 2 * SLICE_BATCHES} <= set(ends)


@async_test
async def test_many_partitions_leave_others_their_turn(following: Following) -> None:
    partitions = [TopicPartition("t", index) for index in range(4)]
    for tp in partitions:
        following.tell_leader(tp)
        following.append(b"a", tp=tp)
        following.tell_follower(tp)
    ends = set()
    while sum(following.log(tp).log_end_offset for tp in partitions) < len(partitions):
        await asyncio.sleep(0)
        ends.add(tuple(following.log(tp).log_end_offset for tp in partitions))
    assert {(1, 0, 0, 0), (1, 1, 0, 0), (1, 1, 1, 0)} <= ends


@async_test
async def test_nothing_is_appended_once_it_leads_itself(following: Following) -> None:
    following.tell_leader()
    following.append(*([b"x"] * (3 * SLICE_BATCHES)))
    following.tell_follower()
    while following.log().log_end_offset < SLICE_BATCHES:
        await asyncio.sleep(0)
    following.follower.lead(epoch=1, partition_epoch=1)
    await following.turns()
    assert following.log().log_end_offset == SLICE_BATCHES
    assert following.link.is_closed


@async_test
async def test_records_to_flush_are_on_the_disk_before_the_next_fetch(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    following = Following(tmp_path, {"flush.messages": "1"}, pool=pool)
    following.lead()
    await following.turns()
    pool.run_all()
    following.append(b"a")
    await following.turns()
    assert following.log().log_end_offset == 1
    count = len(following.link.fetches)
    await following.advance(BACKOFF_MS)
    assert len(following.link.fetches) == count
    pool.run_all()
    await following.turns()
    assert len(following.link.fetches) == count + 1
    following.shutdown()


@async_test
async def test_records_of_another_leader_are_on_the_disk_before_the_first_fetch(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    following = Following(tmp_path, {"flush.messages": "1"}, pool=pool)
    following.lead()
    await following.turns()
    pool.run_all()
    following.append(b"a")
    await following.turns()
    assert following.log().unflushed_messages == 1
    following.shutdown()
    following.resume()
    following.lead(epoch=1)
    await following.turns()
    assert not following.link.fetches
    pool.run_all()
    await following.turns()
    assert following.link.fetches
    following.shutdown()


# Errors


@async_test
async def test_a_leader_that_does_not_answer_gets_another_fetch_after_the_backoff(following: Following) -> None:
    following.lead()
    following.link.failure = OSError("refused")
    await following.turns()
    following.append(b"a")
    following.link.failure = None
    await following.advance(BACKOFF_MS - 1)
    assert following.log().log_end_offset == 0
    await following.advance(1)
    assert following.log().log_end_offset == 1
    assert following.link.fetches[0].session_epoch == 0


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
        999,  # of a later version
    ],
)
def test_a_partition_in_error_is_fetched_again_after_the_backoff(tmp_path: Path, code: int) -> None:
    @async_test
    async def scenario() -> None:
        following = Following(tmp_path)
        following.lead()
        following.lead(OTHER)
        following.link.change = answering(code, 0)
        following.append(b"a")
        following.append(b"a", tp=OTHER)
        await following.turns()
        assert (following.log().log_end_offset, following.log(OTHER).log_end_offset) == (0, 1)
        following.link.change = honest
        await following.advance(BACKOFF_MS - 1)
        assert following.log().log_end_offset == 0
        await following.advance(500)
        assert following.log().log_end_offset == 1
        following.shutdown()

    scenario()


@pytest.mark.parametrize(
    "code",
    [
        *(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH),
        *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
def test_a_leader_with_an_old_epoch_gets_another_fetch_soon_and_then_later(tmp_path: Path, code: int) -> None:
    @async_test
    async def scenario() -> None:
        following = Following(tmp_path)
        following.lead()
        following.link.change = answering(code, 0)
        following.append(b"a")
        await following.turns()
        for delay_ms in (20, 40, 80, 160, 320, 640, BACKOFF_MS, BACKOFF_MS):
            asked = len(following.link.fetches)
            await following.advance(delay_ms - 1)
            assert len(following.link.fetches) == asked
            await following.advance(1)
            assert len(following.link.fetches) > asked
        following.link.change = honest
        await following.advance(BACKOFF_MS)
        assert following.log().log_end_offset == 1
        following.shutdown()

    scenario()


@async_test
async def test_a_fenced_partition_waits_for_the_next_leader_and_isr(following: Following) -> None:
    following.lead()
    await following.turns()
    following.tell_leader(epoch=1)
    following.append(b"a")
    await following.turns()
    await following.advance(60_000)
    assert following.log().log_end_offset == 0
    assert not following.is_followed()
    following.tell_follower(epoch=1)
    await following.turns()
    assert following.log().log_end_offset == 1


@async_test
async def test_a_leader_without_the_epoch_gets_another_fetch(following: Following) -> None:
    following.tell_leader()
    following.tell_follower(epoch=1)
    await following.turns()
    following.tell_leader(epoch=1)
    following.append(b"a")
    await following.turns()
    assert following.log().log_end_offset == 0
    await following.advance(BACKOFF_MS)
    assert following.log().log_end_offset == 1


def corrupt(request: Request, response: Response) -> Response:
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for data in topic.partitions:
                assert isinstance(data.records, bytes | memoryview)
                damaged = bytearray(data.records)
                damaged[-1:] = bytes([damaged[-1] ^ 1]) if damaged else b""
                data.records = bytes(damaged)
    return response


def garbage(request: Request, response: Response) -> Response:
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for data in topic.partitions:
                data.records = b"\x00" * 100
    return response


@pytest.mark.parametrize("damage", [corrupt, garbage])
def test_corrupt_records_are_refused_and_fetched_again(
    tmp_path: Path, damage: Callable[[Request, Response], Response]
) -> None:
    @async_test
    async def scenario() -> None:
        following = Following(tmp_path)
        following.tell_leader()
        following.append(b"a")
        following.tell_follower()
        following.link.change = damage
        await following.turns()
        assert following.log().log_end_offset == 0
        following.link.change = honest
        await following.advance(BACKOFF_MS)
        assert following.log().log_end_offset == 1
        following.shutdown()

    scenario()


@async_test
async def test_records_that_do_not_fit_the_end_of_the_log_park_the_partition(following: Following) -> None:
    following.lead()
    following.lead(OTHER)
    await following.turns()
    append(following.log(), b"not from the leader")
    following.append(b"a")
    following.append(b"a", tp=OTHER)
    await following.turns()
    await following.advance(BACKOFF_MS)
    assert not following.is_followed()
    assert following.log().log_end_offset == 1
    assert following.log(OTHER).log_end_offset == 1


@async_test
async def test_records_without_room_are_fetched_again(following: Following) -> None:
    following.lead()
    await following.turns()
    log_dir = following.follower.log_manager.log_dirs[0]
    log_dir.space.ran_out(OSError(ENOSPC, "No space left on device"))
    following.append(b"a")
    await following.turns()
    assert (following.log().log_end_offset, following.is_followed()) == (0, True)
    log_dir.check_space()
    await following.advance(BACKOFF_MS)
    assert following.log().log_end_offset == 1


@async_test
async def test_a_failed_directory_parks_the_partition(following: Following) -> None:
    following.lead()
    await following.turns()
    following.follower.log_manager.log_dirs[0].fail("test", OSError(5, "Input/output error"))
    following.append(b"a")
    await following.turns()
    assert not following.is_followed()
    assert following.link.is_closed


@async_test
async def test_a_bug_does_not_end_replication(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.lead()

    def bug(request: Request, response: Response) -> Response:
        raise ZeroDivisionError

    following.link.change = bug
    following.append(b"a")
    await following.turns()
    following.link.change = honest
    assert following.log().log_end_offset == 0
    await following.advance(BACKOFF_MS)
    assert following.log().log_end_offset == 1


# Throttling


@async_test
async def test_a_throttled_partition_waits_while_the_rate_is_too_high(tmp_path: Path) -> None:
    throttled = {"follower.replication.throttled.replicas": f"0:{FOLLOWER_ID},1:{LEADER_ID}"}
    following = Following(tmp_path, throttled)
    following.bytes_per_second = 1
    value = b"x" * 1_000_000
    for tp in (TP, OTHER):
        following.tell_leader(tp, isr=[LEADER_ID])
        following.append(value, value, tp=tp)
        following.tell_follower(tp)
    await following.turns()
    assert (following.log().log_end_offset, following.log(OTHER).log_end_offset) == (1, 2)
    following.append(b"y", tp=OTHER)
    await following.turns()
    assert following.log(OTHER).log_end_offset == 3, "the others go on"
    following.bytes_per_second = 10_000_000
    await following.advance(BACKOFF_MS)
    assert following.log().log_end_offset == 2


@async_test
async def test_a_throttled_partition_that_is_in_sync_goes_on(tmp_path: Path) -> None:
    following = Following(tmp_path, {"follower.replication.throttled.replicas": "*"})
    following.bytes_per_second = 1
    following.lead()
    await following.turns()
    following.append(b"x" * 1_000)
    await following.turns()
    following.append(b"y")
    await following.turns()
    assert following.log().log_end_offset == 2
    following.shutdown()
