"""Answers for partitions whose state has changed since the request."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.disks.logs import append
from tests.support.in_process.replication.following import Following, bytes_of, error_in, honest
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
