"""Answers for partitions whose state has changed since the request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool, append
from tests.support.in_process.replication.following import (
    Following,
    behind_the_leaders_start,
    bytes_of,
    ends_after_the_leaders,
    error_in,
    honest,
)
from tests.support.in_process.replication.replicas import TP

OTHER = TopicPartition("t", 1)


@async_test
async def test_an_answer_to_another_epoch_is_left_alone(following: Following) -> None:
    following.lead()
    following.append(b"a")
    await following.turns()

    def meanwhile(request: Request, response: Response) -> Response:
        if isinstance(request, FetchRequest):
            following.link.change = honest
            following.tell_leader(epoch=1)
            following.tell_follower(epoch=1)
            return error_in(response, ErrorCode.FENCED_LEADER_EPOCH)  # type: ignore[arg-type]
        return response

    following.append(b"b")
    following.link.change = meanwhile
    await following.turns()
    assert following.is_followed()
    assert following.log().log_end_offset == 2, "fetched again at once"


@pytest.mark.parametrize("is_to_be_cut", [False, True])
def test_an_answer_is_left_alone_if_the_log_ends_elsewhere_by_now(tmp_path: Path, is_to_be_cut: bool) -> None:
    @async_test
    async def scenario() -> None:
        following = Following(tmp_path)
        following.lead()
        if not is_to_be_cut:
            following.append(b"a")
            await following.turns()

        def meanwhile(request: Request, response: Response) -> Response:
            following.link.change = honest
            append(following.log(), b"b")
            if is_to_be_cut:
                following.log().state.leader_epochs.clear()
            following.fetchers.add([following.follower.manager.partition(TP)])
            return response

        following.link.change = meanwhile
        following.append(b"b", b"c")
        await following.turns()
        assert following.is_followed()
        assert bytes_of(following.log()) == bytes_of(following.leader_log())
        following.shutdown()

    scenario()


@async_test
async def test_an_answer_from_before_the_next_epoch_counts(following: Following) -> None:
    """The leader does not send the same high watermark twice in one fetch session."""
    following.lead()
    told: list[int] = []

    def meanwhile(request: Request, response: Response) -> Response:
        if isinstance(response, FetchResponse) and response.responses and not told:
            (data,) = response.responses[0].partitions
            if data.high_watermark == 1:
                told.append(data.high_watermark)
                following.tell_leader(epoch=1)
                following.tell_follower(epoch=1)
        return response

    following.link.change = meanwhile
    following.append(b"a")
    for _ in range(3):
        await following.advance(500)
    assert (told, following.log().high_watermark) == ([1], 1)


@async_test
async def test_an_answer_about_a_removed_partition_is_left_alone(following: Following) -> None:
    following.lead()
    following.lead(OTHER)

    def meanwhile(request: Request, response: Response) -> Response:
        following.fetchers.remove([TP])
        return response

    following.append(b"a")
    following.append(b"a", tp=OTHER)
    following.link.change = meanwhile
    await following.turns()
    assert (following.log().log_end_offset, following.log(OTHER).log_end_offset) == (0, 1)


@pytest.mark.parametrize(
    ("begin", "end_offset"), [(ends_after_the_leaders, 1), (behind_the_leaders_start, 3)], ids=["cut", "restart"]
)
def test_a_partition_that_is_removed_right_after_its_log_was_cut_is_left_alone(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Following], Awaitable[None]],
    end_offset: int,
) -> None:
    """The cut of flushed records waits for a checkpoint; the fetcher goes on a turn of the loop after it."""

    @async_test
    async def scenario() -> None:
        pool = DeferredIoPool()
        following = Following(tmp_path, pool=pool)
        await begin(following)
        following.log().flush()
        pool.run_all()
        following.lead(OTHER)  # so that the fetcher goes on
        following.lead(epoch=1)
        pool.run_all()
        await following.turns()
        before = following.log().log_end_offset
        pool.run_all()
        assert (following.log().log_end_offset, before != end_offset) == (end_offset, True)
        following.fetchers.remove([TP])
        await following.turns()
        assert not following.is_followed()
        assert "Error in the fetcher" not in caplog.text
        following.shutdown()

    scenario()
