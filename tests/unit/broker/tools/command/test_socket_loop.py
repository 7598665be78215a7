from __future__ import annotations

import gc
import socket
from collections.abc import Iterator

import pytest

from odradek.broker.tools.command.socket_loop import READ, gather, run, sleep, wait_for
from odradek.timer.clock import SystemClock

FAR_MS = 30_000
CLOCK = SystemClock()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    here.setblocking(False)
    yield here, there
    here.close()
    there.close()


async def read(sock: socket.socket, until_ms: int | None = None) -> bytes:
    await wait_for(sock, READ, CLOCK.monotonic_ms() + FAR_MS if until_ms is None else until_ms)
    return sock.recv(100)


def test_a_socket_is_waited_for(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    there.send(b"x")
    assert run(read(here), CLOCK) == b"x"


def test_coroutines_run_at_the_same_time(ends: tuple[socket.socket, socket.socket]) -> None:
    """The first waits for what the second sends."""
    here, there = ends

    async def send() -> bytes:
        await sleep(CLOCK.monotonic_ms())
        there.send(b"y")
        return b"sent"

    async def both() -> list[bytes]:
        return await gather([read(here), send()])

    assert run(both(), CLOCK) == [b"y", b"sent"]


def test_none_and_one_need_no_group() -> None:
    async def seven() -> int:
        return 7

    async def work() -> tuple[list[int], list[int]]:
        return await gather([]), await gather([seven()])

    assert run(work(), CLOCK) == ([], [7])


def test_a_socket_that_is_not_ready_in_time_is_an_error(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        run(read(ends[0], CLOCK.monotonic_ms()), CLOCK)


def test_an_error_is_raised_when_all_have_ended() -> None:
    ended = []

    async def fail() -> None:
        raise ValueError("first")

    async def go_on() -> None:
        await sleep(CLOCK.monotonic_ms() + 1)
        ended.append(1)

    async def work() -> None:
        with pytest.raises(ValueError, match="first"):
            await gather([fail(), go_on()])
        assert ended == [1]

    run(work(), CLOCK)


def test_an_interrupt_ends_what_waits(ends: tuple[socket.socket, socket.socket]) -> None:
    closed = []

    async def wait() -> None:
        try:
            await read(ends[0])
        finally:
            closed.append(1)

    async def interrupt() -> None:
        await sleep(CLOCK.monotonic_ms())
        raise KeyboardInterrupt

    async def both() -> None:
        await gather([wait(), interrupt()])

    with pytest.raises(KeyboardInterrupt):
        run(both(), CLOCK)
    assert closed == [1]


def test_an_interrupt_ends_coroutines_that_have_not_begun() -> None:
    """One that never begins is a warning, which fails this test."""

    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def work() -> None:
        await gather([interrupted(), sleep_for_ever(), sleep_for_ever()])

    async def sleep_for_ever() -> None:
        await sleep(CLOCK.monotonic_ms() + FAR_MS)

    with pytest.raises(KeyboardInterrupt):
        run(work(), CLOCK)
    gc.collect()
