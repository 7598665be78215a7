from __future__ import annotations

import gc
import selectors
import socket
from collections.abc import Iterator

import pytest

from odradek.broker.tools.command.socket_loop import (
    MAX_SELECT_S,
    READ,
    Background,
    Cancelled,
    Event,
    cancel,
    gather,
    run,
    sleep,
    spawn,
    turn,
    wait_for,
)
from odradek.timer.clock import ManualClock, SystemClock
from tests.support.virtual_test import current_clock, virtual_test

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


def test_a_time_limit_may_be_longer_than_a_selector_takes(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    there.send(b"x")
    assert run(read(here, CLOCK.monotonic_ms() + 2**62), CLOCK) == b"x"


def test_a_wait_of_more_than_a_day_lasts_to_its_end() -> None:
    clock = ManualClock(0)
    waited_s: list[float | None] = []

    class Selector(selectors.SelectSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            waited_s.append(timeout)
            clock.advance(round((timeout or 0) * 1000))
            return []

    run(sleep(1000 * MAX_SELECT_S + 1), clock, Selector())
    assert waited_s == [MAX_SELECT_S, 0.001]


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


@virtual_test
async def test_an_event_is_waited_for_until_a_time() -> None:
    clock, event = current_clock(), Event()
    began_ms = clock.monotonic_ms()
    assert not await event.wait(began_ms + 50)
    assert clock.monotonic_ms() == began_ms + 50

    async def happen() -> None:
        await sleep(began_ms + 70)
        event.set()

    spawn(happen())
    assert await event.wait(began_ms + 100)
    assert clock.monotonic_ms() == began_ms + 70
    assert await event.wait(), "it has happened"


@virtual_test
async def test_a_task_that_is_cancelled_cleans_up_before_it_ends() -> None:
    steps = []

    async def work() -> None:
        try:
            await Event().wait()
        finally:
            await sleep(current_clock().monotonic_ms() + 10)
            steps.append("cleaned up")

    task = spawn(work())
    await turn()
    await cancel([task])
    assert steps == ["cleaned up"]
    with pytest.raises(Cancelled):
        task.result()
    task.cancel()  # it has ended


@virtual_test
async def test_a_task_is_cancelled_before_it_begins_and_when_it_could_go_on() -> None:
    steps = []

    async def work(event: Event) -> None:
        steps.append("begun")
        await event.wait()
        steps.append("not reached")

    await cancel([spawn(work(Event()))])
    assert steps == []
    event = Event()
    task = spawn(work(event))
    await turn()
    event.set()
    await cancel([task])
    assert steps == ["begun"]


@virtual_test
async def test_a_task_that_cancels_itself_ends_at_its_next_wait() -> None:
    async def work() -> None:
        task.cancel()
        await Event().wait()

    task = spawn(work())
    await task.ended.wait()
    with pytest.raises(Cancelled):
        task.result()


@virtual_test
async def test_the_coroutines_of_a_group_that_is_cancelled_are_cancelled() -> None:
    ended = []

    async def wait(name: str) -> None:
        try:
            await Event().wait()
        finally:
            ended.append(name)

    task = spawn(gather([wait("a"), wait("b")]))
    await turn()
    await turn()
    await cancel([task])
    assert sorted(ended) == ["a", "b"]


def test_an_error_in_the_background_ends_the_run_in_order() -> None:
    ended = []

    async def fail() -> None:
        raise ValueError("unexpected")

    async def work() -> None:
        background = Background()
        background.start(fail())
        try:
            await Event().wait()
        finally:
            await background.close()
            ended.append(1)

    with pytest.raises(ValueError, match="unexpected"):
        run(work(), CLOCK)
    assert ended == [1]


@virtual_test
async def test_tasks_in_the_background_are_cancelled_with_the_last_of_them() -> None:
    ended = []

    async def wait(name: str) -> None:
        try:
            await Event().wait()
        finally:
            ended.append(name)

    background = Background()
    for name in ("a", "b"):
        background.start(wait(name))
        await turn()
    await background.close()
    assert ended == ["a", "b"]


def test_a_task_that_only_lets_others_go_on_does_not_keep_sockets_waiting(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    here, there = ends

    async def work() -> bytes:
        task = spawn(read(here))
        there.send(b"x")
        while not task.is_done:
            await turn()
        return task.result()

    assert run(work(), CLOCK) == b"x"
