from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

import pytest

from odradek.broker.machine.io_pool import THREADS, ThreadIoPool, run_in_pool


def run(scenario: Callable[[ThreadIoPool], object]) -> None:
    async def main() -> None:
        pool = ThreadIoPool(asyncio.get_running_loop())
        try:
            await scenario(pool)  # type: ignore[misc]
        finally:
            pool.close()

    asyncio.run(main())


def test_work_runs_in_a_thread_and_its_result_comes_back_on_the_loop() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        done: asyncio.Future[tuple[object, bool]] = asyncio.get_running_loop().create_future()
        loop_thread = threading.get_ident()
        pool.submit(
            threading.get_ident,
            lambda worker: done.set_result((worker, threading.get_ident() == loop_thread)),
        )
        assert pool.pending == 1
        worker, is_on_loop = await done
        assert worker != loop_thread
        assert is_on_loop
        assert pool.pending == 0

    run(scenario)


def test_disk_error_is_a_result() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        def failing() -> None:
            raise OSError(5, "Input/output error")

        pool.submit(failing, done.set_result)
        assert isinstance(await done, OSError)

    run(scenario)


def test_bug_in_the_work_goes_to_the_loops_handler() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        reported: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.set_result(context["exception"])
        )
        pool.submit(lambda: 1 // 0, lambda result: pytest.fail("done was called"))
        assert isinstance(await reported, ZeroDivisionError)

    run(scenario)


def test_threads_are_few_and_only_started_for_work() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        assert not pool._threads
        results: list[object] = []
        all_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finished(result: object) -> None:
            results.append(result)
            if len(results) == 50:
                all_done.set_result(None)

        for number in range(50):
            pool.submit(lambda number=number: number, finished)  # type: ignore[misc]
        await all_done
        assert sorted(results) == list(range(50))  # type: ignore[type-var]
        assert 1 <= len(pool._threads) <= THREADS

    run(scenario)


def test_the_loop_starts_one_thread_and_that_one_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Thread.start` waits until the new thread has a core."""
    starters: list[int] = []
    start = threading.Thread.start

    def record(thread: threading.Thread) -> None:
        starters.append(threading.get_ident())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", record)

    async def scenario(pool: ThreadIoPool) -> None:
        all_at_work = threading.Barrier(THREADS + 1, timeout=10)
        for _ in range(THREADS):
            pool.submit(lambda: all_at_work.wait() and None, lambda _: None)
        all_at_work.wait()  # each job has a thread of its own
        assert len(starters) == THREADS
        assert starters.count(threading.get_ident()) == 1

    run(scenario)


def test_where_no_more_threads_are_allowed_the_first_one_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under a limit of processes (RLIMIT_NPROC, pids.max)."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)

    async def scenario(pool: ThreadIoPool) -> None:
        results: list[int] = []
        all_done = asyncio.Event()

        def finished(result: int | OSError) -> None:
            assert isinstance(result, int)
            results.append(result)
            if len(results) == 3:
                all_done.set()

        for number in range(3):
            pool.submit(lambda number=number: number, finished)  # type: ignore[misc]
        await asyncio.wait_for(all_done.wait(), 10)
        assert results == [0, 1, 2]
        assert pool._threads == started

    run(scenario)


def test_close_finishes_what_was_submitted() -> None:
    finished: list[int] = []

    async def scenario(pool: ThreadIoPool) -> None:
        for number in range(10):
            pool.submit(lambda number=number: finished.append(number), lambda result: None)  # type: ignore[misc]

    run(scenario)
    assert sorted(finished) == list(range(10))


def test_settled_waits_for_what_was_submitted_and_for_what_its_results_submit() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        await pool.settled()
        may_end = threading.Event()
        done: list[int] = []

        def first_done(_: object) -> None:
            done.append(1)
            pool.submit(lambda: None, lambda _: done.append(2))

        pool.submit(lambda: may_end.wait(10) and None, first_done)
        waiters = [asyncio.ensure_future(pool.settled()) for _ in range(2)]
        await asyncio.sleep(0)
        assert not any(waiter.done() for waiter in waiters)
        may_end.set()
        await asyncio.wait_for(asyncio.gather(*waiters), 10)
        assert done == [1, 2]
        assert pool.pending == 0

    run(scenario)


def test_settled_ends_after_a_bug_in_the_work_and_in_what_gets_its_result() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
        pool.submit(lambda: 1 // 0, lambda _: None)
        pool.submit(lambda: None, lambda _: 1 // 0 and None)
        await asyncio.wait_for(pool.settled(), 10)
        await asyncio.sleep(0)
        assert [type(error) for error in reported] == [ZeroDivisionError] * 2

    run(scenario)


def test_submit_after_close_starts_no_thread() -> None:
    """As a load does that gets its last read during the stop and submits the next one."""
    ran: list[int] = []

    async def scenario(pool: ThreadIoPool) -> None:
        pool.submit(lambda: ran.append(1), lambda _: pool.submit(lambda: ran.append(2), lambda _: None))
        pool.close()
        await asyncio.sleep(0)
        before = threading.active_count()
        pool.submit(lambda: ran.append(3), lambda _: None)
        assert threading.active_count() == before
        assert pool.pending == 0

    run(scenario)
    assert ran == [1]


def test_who_waits_for_work_gets_its_result_or_whatever_it_raises() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        assert await run_in_pool(pool, threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await run_in_pool(pool, lambda: 1 // 0)
        with pytest.raises(FileNotFoundError):
            await run_in_pool(pool, lambda: os.stat("/absent"))
        assert pool.pending == 0

    run(scenario)


def test_the_end_of_work_for_which_no_one_waits_is_dropped() -> None:
    async def scenario(pool: ThreadIoPool) -> None:
        waiting = asyncio.ensure_future(run_in_pool(pool, lambda: 1 // 0))
        await asyncio.sleep(0)
        waiting.cancel()
        while pool.pending:
            await asyncio.sleep(0)
        assert waiting.cancelled()

    run(scenario)
