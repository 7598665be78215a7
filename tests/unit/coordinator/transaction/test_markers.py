"""Markers and what is done about each answer; the transcripts in tests/golden/transactions tell the longer stories."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from odradek.coordinator.transaction.config import (
    MARKER_RETRY_BACKOFF_MAX_MS,
    MARKER_RETRY_BACKOFF_MS,
    MARKER_RETRY_PAUSE,
)
from odradek.coordinator.transaction.markers import FENCED, MARKED, NO_NODE, RETRIABLE
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import SLICE_MS
from tests.support.transcripts.transaction_transcript import Transcript

P0 = TopicPartition("t", 0)
DECIDED = ("init p", "add p t-0 t-1", "end p commit")


def decided(error: ErrorCode) -> Transcript:
    """A transaction that was committed, with the error for the marker of one of its two partitions."""
    world = Transcript()
    world.channel.errors[P0] = error
    for command in DECIDED:
        world.run(command)
    return world


def state(world: Transcript) -> TransactionState:
    (found,) = world.coordinator.states.transactions
    return found.state


@pytest.mark.parametrize("error", MARKED, ids=lambda error: error.name)
def test_the_partition_has_its_marker_or_needs_none(error: ErrorCode) -> None:
    world = decided(error)
    assert state(world) is TransactionState.COMPLETE_COMMIT
    assert world.coordinator.markers.pending_count == 0


@pytest.mark.parametrize("error", RETRIABLE, ids=lambda error: error.name)
def test_it_is_sent_again_until_it_is_written(error: ErrorCode) -> None:
    world = decided(error)
    assert state(world) is TransactionState.PREPARE_COMMIT
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert [request.markers[0].topics[0].partition_indexes for _, request in world.channel.sent] == [[0, 1], [0]]
    world.channel.errors.clear()
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert state(world) is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("error", FENCED, ids=lambda error: error.name)
def test_markers_of_a_fenced_producer_are_dropped(error: ErrorCode) -> None:
    world = decided(error)
    world.pass_time(1000)
    assert (state(world), len(world.channel.sent)) == (TransactionState.PREPARE_COMMIT, 1)
    assert world.coordinator.markers.pending_count == 0


def test_an_unexpected_error_is_logged_and_the_transaction_stays_pending(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        world = decided(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert "Unexpected error UNKNOWN_SERVER_ERROR for the marker of transactional id p in t-0" in caplog.text
    world.pass_time(1000)
    assert (state(world), len(world.channel.sent)) == (TransactionState.PREPARE_COMMIT, 1)


def test_partitions_that_are_deleted_meanwhile_need_no_marker() -> None:
    world = decided(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    world.channel.leaders[P0] = None
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert state(world) is TransactionState.COMPLETE_COMMIT


def test_partitions_that_the_metadata_do_not_name_yet_get_their_marker_later() -> None:
    """A new controller names partitions without an online replica after the others."""
    world = decided(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    world.channel.leaders[P0] = None
    world.channel.in_tree.add(P0)
    world.pass_time(10 * MARKER_RETRY_BACKOFF_MS)
    assert state(world) is TransactionState.PREPARE_COMMIT
    assert world.coordinator.markers.unknown_destinations == 1
    del world.channel.leaders[P0]
    world.channel.errors.clear()
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert world.channel.sent[-1][1].markers[0].topics[0].partition_indexes == [0]
    assert state(world) is TransactionState.COMPLETE_COMMIT
    assert world.coordinator.markers.unknown_destinations == 0


def test_markers_for_an_unknown_leader_are_counted_while_they_wait() -> None:
    world = decided(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.coordinator.markers.unknown_destinations == 0, "its leader is known"
    world.channel.leaders[P0] = NO_NODE
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert world.coordinator.markers.unknown_destinations == 1
    del world.channel.leaders[P0]
    world.channel.errors.clear()
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert world.coordinator.markers.unknown_destinations == 0
    assert state(world) is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("error", ["NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR"])
def test_an_end_that_is_written_again_is_counted_while_it_waits(error: str) -> None:
    """After an error of the disk, too: it may only be full, and this broker stays the coordinator."""
    world = Transcript()
    for command in ("init p", "add p t-0", "hold markers", "end p commit", f"fail log {error}"):
        world.run(command)
    world.run("release markers")
    assert world.coordinator.markers.append_retries == 1
    world.log.error = ErrorCode.NONE
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert world.coordinator.markers.append_retries == 0
    assert state(world) is TransactionState.COMPLETE_COMMIT


def many_decided(count: int) -> Transcript:
    """So many transactions that were committed, while their leader does not answer."""
    world = Transcript()
    world.run("hold markers")
    for number in range(count):
        for command in (f"init p{number}", f"add p{number} t-{number}", f"end p{number} commit"):
            world.run(command)
    return world


def test_a_round_of_retries_sends_one_request_to_each_leader() -> None:
    world = many_decided(10)
    world.channel.errors = {TopicPartition("t", number): ErrorCode.NOT_LEADER_OR_FOLLOWER for number in range(10)}
    world.run("release markers")
    world.channel.leaders[TopicPartition("t", 3)] = NO_NODE
    before = len(world.channel.sent)
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    world.channel.errors.clear()
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert [len(request.markers) for _, request in world.channel.sent[before:]] == [9, 9]
    assert (world.coordinator.markers.unknown_destinations, world.coordinator.markers.pending_count) == (1, 1)


def test_a_long_round_of_retries_is_in_slices_and_the_next_one_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    world = many_decided(20)
    world.run("fail log NOT_ENOUGH_REPLICAS")
    world.run("release markers")
    markers = world.coordinator.markers
    assert markers.append_retries == 20
    assert world.timer.size == 3, "one timer for all, beside those of two sweeps"
    appended_ms: list[int] = []
    append = world.log.append

    def slow_append(*arguments: Any, **options: Any) -> None:
        appended_ms.append(world.clock.monotonic_ms())
        world.clock.advance(1)
        append(*arguments, **options)

    monkeypatch.setattr(world.log, "append", slow_append)
    world.clock.advance(MARKER_RETRY_BACKOFF_MS)
    world.timer.advance()
    assert len(appended_ms) == SLICE_MS, "the loop gets its turn"
    while len(appended_ms) < 20:
        world.timer.advance()
    pause_ms = MARKER_RETRY_PAUSE * 20
    world.pass_time(pause_ms - 1)
    assert len(appended_ms) == 20
    world.clock.advance(1)
    world.timer.advance()
    assert len(appended_ms) > 20
    monkeypatch.undo()
    world.log.error = ErrorCode.NONE
    world.pass_time(MARKER_RETRY_BACKOFF_MAX_MS)
    assert markers.append_retries == 0
    assert {found.state for found in world.coordinator.states.transactions} == {TransactionState.COMPLETE_COMMIT}


def test_what_waits_is_dropped_with_the_partition() -> None:
    world = decided(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.run("resign")
    assert world.coordinator.markers.pending_count == 0
    world.pass_time(1000)
    assert len(world.channel.sent) == 1


def test_a_request_that_fails_on_its_way_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Transcript()
    for command in DECIDED[:2]:
        world.run(command)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(world.channel, "send_markers", fail)
        with pytest.raises(ZeroDivisionError):
            world.run(DECIDED[2])
    assert state(world) is TransactionState.PREPARE_COMMIT
    world.pass_time(MARKER_RETRY_BACKOFF_MS)
    assert state(world) is TransactionState.COMPLETE_COMMIT


def test_an_end_that_is_refused_for_good_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    world = Transcript()
    for command in ("init p", "add p t-0", "hold markers", "end p commit", "fail log MESSAGE_TOO_LARGE"):
        world.run(command)
    with caplog.at_level(logging.ERROR):
        world.run("release markers")
    assert "Failed to append CompleteCommit of transactional id p: UNKNOWN_SERVER_ERROR" in caplog.text
