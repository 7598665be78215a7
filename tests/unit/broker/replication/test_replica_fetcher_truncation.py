"""Followers whose logs diverge from their leader's, or are out of its range."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.replication import follower_log
from odradek.broker.replication.copied_records import SLICE_BATCHES
from odradek.broker.replication.fetch_states import FIRST_REFUSAL_MS
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import SpecialTimestamp
from odradek.storage.producers.producer_recovery import REPLAYED_AT_ONCE
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool, append, batch
from tests.support.in_process.replication.following import (
    FOLLOWER_ID,
    LEADER_ID,
    Following,
    behind_the_leaders_start,
    bytes_of,
    ends_after_the_leaders,
    error_in,
    honest,
)
from tests.support.in_process.replication.replicas import TP

BACKOFF_MS = 1_000
OTHER = TopicPartition("t", 1)


# Offsets out of range


@async_test
async def test_a_log_that_ends_before_the_leaders_start_restarts_there(following: Following) -> None:
    await behind_the_leaders_start(following)
    following.lead(epoch=1)
    await following.turns()
    assert following.link.offsets_asked == [(SpecialTimestamp.LATEST, 1), (SpecialTimestamp.EARLIEST, 1)]
    assert (following.log().log_start_offset, following.log().log_end_offset) == (3, 4)


@async_test
async def test_a_restarted_log_is_on_the_disk_before_the_next_fetch(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    following = Following(tmp_path, pool=pool)
    await behind_the_leaders_start(following)
    pool.run_all()
    following.lead(epoch=1)
    pool.run_all()
    await following.turns()
    assert following.log().log_start_offset == 3
    count = len(following.link.fetches)
    await following.turns()
    assert len(following.link.fetches) == count
    pool.run_all()
    await following.turns()
    assert following.log().log_end_offset == 4
    following.shutdown()


@async_test
async def test_a_log_that_becomes_leader_during_the_offset_request_does_not_restart(following: Following) -> None:
    await behind_the_leaders_start(following)
    following.lead(OTHER)  # so that the fetcher goes on

    def leads(request: Request, response: Response) -> Response:
        if following.link.offsets_asked[-1:] == [(SpecialTimestamp.EARLIEST, 1)]:
            following.follower.lead(epoch=2, partition_epoch=2)
        return response

    following.link.change = leads
    following.lead(epoch=1)
    await following.turns()
    assert following.follower.manager.partition(TP).is_leader
    assert (following.log().log_start_offset, following.log().log_end_offset) == (0, 1)


@async_test
async def test_a_log_that_ends_after_the_leaders_is_cut_to_its_end(following: Following) -> None:
    await ends_after_the_leaders(following)
    following.tell_leader(epoch=1)
    following.tell_follower(epoch=1)
    await following.turns()
    assert following.link.offsets_asked == [(SpecialTimestamp.LATEST, 1)]
    assert following.log().log_end_offset == 1
    following.append(b"e")
    await following.turns()
    assert following.log().log_end_offset == 2


@pytest.mark.parametrize(
    ("code", "is_parked", "delay_ms"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, True, BACKOFF_MS),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, False, FIRST_REFUSAL_MS),
        (ErrorCode.KAFKA_STORAGE_ERROR, False, BACKOFF_MS),
        (None, False, BACKOFF_MS),
    ],
)
def test_an_offset_that_cannot_be_had(tmp_path: Path, code: ErrorCode | None, is_parked: bool, delay_ms: int) -> None:
    @async_test
    async def scenario() -> None:
        following = Following(tmp_path)
        following.lead()

        def refuse(request: Request, response: Response) -> Response:
            if isinstance(response, ListOffsetsResponse):
                if code is None:
                    raise OSError("reset")
                response.topics[0].partitions[0].error_code = code
                return response
            return error_in(response, ErrorCode.OFFSET_OUT_OF_RANGE)  # type: ignore[arg-type]

        following.link.change = refuse
        following.append(b"a")
        await following.turns()
        assert following.is_followed() is not is_parked
        following.link.change = honest
        await following.advance(delay_ms - 1)
        assert following.log().log_end_offset == 0
        await following.advance(1)
        assert following.log().log_end_offset == (0 if is_parked else 1)
        following.shutdown()

    scenario()


# Cutting


async def with_another_history(following: Following) -> None:
    """The follower has one record of the leader's, and one of an epoch that only it has."""
    following.lead(epoch=1)
    following.append(b"a")
    await following.turns()
    append(following.log(), b"x", epoch=2)
    following.shutdown()
    following.resume()


@async_test
async def test_the_high_watermark_comes_once_with_the_diverging_epoch(following: Following) -> None:
    await with_another_history(following)
    following.leader.fetch(1, replica_id=FOLLOWER_ID)  # later answers of the session omit it
    assert (following.leader_log().high_watermark, following.log().high_watermark) == (1, 0)
    following.tell_leader(epoch=3)
    following.tell_follower(epoch=3)
    reader = following.follower.fetch(0, max_wait_ms=60_000, leader_only=False)
    for _ in range(3):
        await following.advance(500)
    assert (following.log().log_end_offset, following.log().high_watermark) == (1, 1)
    assert len(reader) == 1, "the local reader is woken"


@async_test
async def test_a_follower_truncates_epochs_that_the_leader_lacks_and_rejoins(following: Following) -> None:
    following.lead(epoch=1)
    following.append(b"a", b"b")
    await following.turns()
    following.shutdown()
    # The leader continued in epoch 1. The follower led epoch 2, whose records only it has.
    following.append(b"c", b"d")
    append(following.log(), b"e", b"f", b"g", epoch=2)
    following.resume()
    following.lead(epoch=3)
    following.append(b"h")
    await following.turns()
    assert bytes_of(following.log()) == bytes_of(following.leader_log())
    assert [tuple(entry) for entry in following.log().state.leader_epochs.entries] == [(1, 0), (3, 4)]
    await following.advance(500)
    assert following.leader_log().high_watermark == 5


@async_test
async def test_a_diverging_answer_moves_no_watermark_beyond_the_cut(following: Following) -> None:
    following.lead(epoch=1)
    following.append(b"a", b"b")
    await following.turns()
    await following.advance(500)
    append(following.log(), b"x", epoch=2)
    following.shutdown()
    following.resume()
    seen = []

    def look(request: Request, response: Response) -> Response:
        seen.append((following.log().high_watermark, following.log().log_end_offset))
        return response

    following.tell_leader(epoch=3)
    following.append(b"c")
    following.leader.fetch(3, replica_id=FOLLOWER_ID)
    following.tell_follower(epoch=3)
    following.link.change = look
    await following.turns()
    assert seen[0] == (2, 3)
    assert seen[1] == (2, 2), "cut, and nothing else"
    assert following.log().log_end_offset == 3


@async_test
async def test_a_cut_that_is_not_the_last_one_moves_no_watermark(following: Following) -> None:
    """Both have epoch 1, which ends earlier at the leader; the first truncation only removes epoch 3."""
    following.lead(epoch=1)
    following.append(b"a")
    await following.turns()
    following.shutdown()
    append(following.log(), b"x", epoch=1)
    append(following.log(), b"y", epoch=3)
    following.tell_leader(epoch=2, isr=[LEADER_ID])
    following.append(b"b", b"c", b"d")
    following.tell_leader(epoch=4, isr=[LEADER_ID])
    assert following.leader_log().high_watermark == 4
    following.resume()
    following.tell_follower(epoch=4)
    seen = []

    def look(request: Request, response: Response) -> Response:
        seen.append((following.log().log_end_offset, following.log().high_watermark))
        return response

    following.link.change = look
    await following.turns()
    assert seen[:3] == [(3, 0), (2, 0), (1, 1)]
    assert bytes_of(following.log()) == bytes_of(following.leader_log())


@async_test
async def test_a_log_that_is_truncated_below_the_leaders_start_restarts_there(
    following: Following, caplog: pytest.LogCaptureFixture
) -> None:
    """It led from offset 1 on, and did not hear that the epoch before went on elsewhere, and was deleted to 3."""
    following.lead(epoch=2)
    following.append(b"a")
    await following.turns()
    following.shutdown()
    append(following.log(), b"x", b"y", b"z", b"z", epoch=3)
    following.append(b"b", b"c", b"d")
    following.leader.fetch(4, replica_id=FOLLOWER_ID)
    following.leader.manager.delete_records(0, {TP: 3}, lambda results: None)
    following.resume()
    following.lead(epoch=4)
    following.append(b"e")
    await following.turns()
    await following.turns()
    assert (following.log().log_start_offset, following.log().log_end_offset) == (3, 5)
    assert "Error in the fetcher" not in caplog.text


@async_test
async def test_a_log_without_epochs_is_cut_to_its_high_watermark(following: Following) -> None:
    following.tell_leader()
    following.append(b"a")
    following.follower.follow(leader=9)
    append(following.log(), b"a", b"b", b"c")
    following.log().state.leader_epochs.clear()
    following.log().update_high_watermark(1)
    following.tell_leader(epoch=1)
    following.tell_follower(epoch=1)
    await following.turns()
    assert following.log().log_end_offset == 1
    first = following.link.fetches[0].topics[0].partitions[0]
    assert (first.fetch_offset, first.last_fetched_epoch) == (1, -1)


def diverged(tmp_path: Path, pool: DeferredIoPool, *, flushed: bool = False) -> Following:
    """A follower with two records of an epoch that the leader, which has one record, does not know."""
    following = Following(tmp_path, pool=pool)
    following.tell_leader(epoch=1)
    following.append(b"a")
    following.follower.follow(leader=9, epoch=1)
    append(following.log(), b"x", b"y", epoch=2)
    if flushed:
        following.log().flush()
    pool.run_all()
    return following


@async_test
async def test_a_cut_is_on_the_disk_before_the_next_fetch(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    following = diverged(tmp_path, pool)
    following.lead(epoch=3)
    pool.run_all()
    await following.turns()
    assert following.log().log_end_offset == 0
    assert len(following.link.fetches) == 1
    pool.run_all()
    await following.turns()
    assert following.log().log_end_offset == 1
    following.shutdown()


@async_test
async def test_what_a_checkpoint_may_promise_is_cut_off_when_one_on_the_disk_promises_less(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    following = diverged(tmp_path, pool, flushed=True)
    assert following.log().recovery_point == 2
    following.lead(epoch=3)
    pool.run_all()
    await following.turns()
    assert following.log().log_end_offset == 2
    pool.run_all()
    assert following.log().log_end_offset == 0
    await following.turns()
    pool.run_all()
    await following.turns()
    assert following.log().log_end_offset == 1
    following.shutdown()


@async_test
async def test_a_log_is_not_cut_that_was_taken_away_before_the_checkpoint_was_on_the_disk(tmp_path: Path) -> None:
    pool = DeferredIoPool()
    following = diverged(tmp_path, pool, flushed=True)
    following.lead(epoch=3)
    pool.run_all()
    await following.turns()
    following.follower.lead(epoch=4, partition_epoch=4)
    pool.run_all()
    await following.turns()
    assert following.log().log_end_offset == 2
    following.shutdown()


def with_a_long_tail(following: Following) -> None:
    """The follower has some hundreds of batches of an epoch that only it has."""
    following.tell_leader(epoch=1)
    following.append(b"a")
    following.follower.follow(leader=9, epoch=1)
    append(following.log(), b"a", epoch=1, producer_id=1, producer_epoch=0, base_sequence=0)
    for number in range(1, REPLAYED_AT_ONCE + 3):
        append(following.log(), b"x", epoch=1, producer_id=1, producer_epoch=0, base_sequence=number)
    append(following.log(), b"y", epoch=2, producer_id=1, producer_epoch=0, base_sequence=REPLAYED_AT_ONCE + 3)


@async_test
async def test_others_have_their_turn_while_producers_are_replayed(following: Following) -> None:
    with_a_long_tail(following)
    following.leader_log().truncate_to(0)
    following.leader_log().append_as_follower(memoryview(bytes_of(following.log()))[: -len(batch(b"y"))])
    following.lead(epoch=3)
    ends = set()
    while following.log().latest_epoch == 2:
        await asyncio.sleep(0)
        ends.add(following.log().log_end_offset)
    assert following.log().active_producers()[1].last_seq == REPLAYED_AT_ONCE + 2
    assert ends == {REPLAYED_AT_ONCE + 4, REPLAYED_AT_ONCE + 3}


@async_test
async def test_a_log_that_leads_before_its_producers_are_replayed_is_not_cut(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_long_tail(following)
    following.lead(OTHER)  # so that the fetcher goes on

    def leads(log: UnifiedLog, offset: int, now_ms: int) -> Iterator[None]:
        if log.topic_partition == TP:
            following.follower.lead(epoch=4, partition_epoch=4)
        yield

    monkeypatch.setattr(follower_log, "replay_producers", leads)
    following.lead(epoch=3)
    await following.turns()
    assert following.follower.manager.partition(TP).is_leader
    assert following.log().log_end_offset == REPLAYED_AT_ONCE + 4


@async_test
async def test_producers_that_cannot_be_replayed_before_are_in_the_cut(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_another_history(following)

    def fails(log: UnifiedLog, offset: int, now_ms: int) -> Iterator[None]:
        raise FileNotFoundError
        yield

    monkeypatch.setattr(follower_log, "replay_producers", fails)
    following.lead(epoch=3)
    await following.turns()
    assert following.log().log_end_offset == 1


@async_test
async def test_the_future_log_gets_the_offset_of_the_truncation(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_another_history(following)
    told: list[tuple[TopicPartition, int]] = []
    monkeypatch.setattr(following.follower.manager.moves._mover, "mark_for_truncation", lambda *cut: told.append(cut))
    following.lead(epoch=3)
    await following.turns()
    assert told == [(TP, 1)]
    following.shutdown()


# Beside a move to another log directory


async def move(following: Following, directory: Path) -> None:
    """Let time pass until the log is in the directory; the leader gets a record each time."""
    for number in range(200):
        if following.log().log_dir.path == str(directory):
            return
        following.append(b"%d" % number)
        await following.advance(1)
    raise AssertionError("the log was not moved")


@async_test
async def test_a_log_that_moves_is_followed_meanwhile_and_afterwards(tmp_path: Path) -> None:
    other = tmp_path / "other"
    following = Following(tmp_path, log_dirs=[other])
    following.lead()
    following.append(*[b"x"] * 20)
    await following.turns()
    assert following.follower.manager.moves.alter(TP, str(other)) == ErrorCode.NONE
    await move(following, other)
    following.append(b"after")
    await following.turns()
    assert bytes_of(following.log()) == bytes_of(following.leader_log())
    following.shutdown()


@async_test
async def test_a_log_that_is_cut_while_it_moves_arrives_cut(tmp_path: Path) -> None:
    other = tmp_path / "other"
    following = Following(tmp_path, log_dirs=[other])
    following.lead(epoch=1)
    following.append(b"a", b"b")
    await following.turns()
    following.shutdown()
    for _ in range(SLICE_BATCHES + 1):
        append(following.log(), b"never committed", epoch=2)
    following.resume()
    assert following.follower.manager.moves.alter(TP, str(other)) == ErrorCode.NONE
    following.follower.advance(1)  # cuts the future log
    following.follower.advance(1)  # copies a slice
    future = following.follower.manager.partition(TP).future_log
    assert future is not None
    assert future.log_end_offset == SLICE_BATCHES
    following.lead(epoch=3)
    await following.turns()
    assert following.log().log_end_offset == 2
    await move(following, other)
    following.append(b"after")
    await following.turns()
    assert bytes_of(following.log()) == bytes_of(following.leader_log())
    following.shutdown()


@async_test
async def test_a_log_of_which_nothing_is_cut_is_fetched_without_waiting_for_the_disk(tmp_path: Path) -> None:
    """When another broker has died, this one leads many partitions and writes their leader epochs."""
    pool = DeferredIoPool()
    following = Following(tmp_path, pool=pool)
    following.lead()
    pool.run_all()
    following.follower.lead(OTHER)
    following.append(b"a")
    await following.turns()
    assert following.log().log_end_offset == 1
    assert pool.pending
    following.shutdown()
