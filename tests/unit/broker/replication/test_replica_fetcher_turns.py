"""The turns of the event loop that a fetcher takes."""

from __future__ import annotations

import asyncio

from odradek.protocol.codec.schema import Request, Response
from tests.support.async_test import async_test
from tests.support.in_process.replication.following import Following


@async_test
async def test_records_that_come_alone_are_appended_in_the_turn_in_which_they_come(following: Following) -> None:
    following.lead()
    await following.turns()
    in_the_next_turn: list[int] = []

    def change(_: Request, response: Response) -> Response:
        asyncio.get_running_loop().call_soon(lambda: in_the_next_turn.append(following.log().log_end_offset))
        return response

    following.link.change = change
    following.append(b"a")
    await following.turns()
    assert in_the_next_turn == [1]
