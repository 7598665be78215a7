from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from odradek.controller.tree.metadata_tree import Exists
from odradek.controller.tree.private_file import IN_MEMORY
from odradek.testing.node.running.activity import Activity, CountedIoPool, CountedTree, CountedWorkers
from odradek.timer.clock import SystemClock


def test_it_settles_when_work_that_follows_from_work_has_ended() -> None:
    async def test() -> None:
        activity = Activity()
        steps: list[str] = []
        loop = asyncio.get_running_loop()

        def second() -> None:
            steps.append("second")
            activity.end()

        def first() -> None:
            activity.end()
            activity.begin()
            loop.call_later(0.001, second)

        activity.begin()
        loop.call_later(0.001, first)
        await activity.settle()
        assert steps == ["second"]

    asyncio.run(test())


def test_the_work_of_threads_is_counted_also_if_it_fails() -> None:
    async def test() -> None:
        activity = Activity()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: None)
        pool = CountedIoPool(loop, activity)
        go_on = threading.Event()
        results: list[object] = []
        pool.submit(lambda: go_on.wait(10), results.append)
        settled = asyncio.ensure_future(activity.settle())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not settled.done()
        go_on.set()
        await settled
        assert results == [True]
        pool.submit(_bug, results.append)
        await activity.settle()
        pool.close()

    asyncio.run(test())


def _bug() -> None:
    raise ValueError


def test_the_jobs_of_processes_are_counted() -> None:
    async def test() -> None:
        activity = Activity()
        workers = CountedWorkers(asyncio.get_running_loop(), activity)
        results: list[object] = []
        workers.submit(_double, 21, results.append)
        await activity.settle()
        assert results == [42]
        workers.close()

    asyncio.run(test())


def _double(argument: int, report: Callable[[object], None]) -> int:
    return 2 * argument


def test_the_requests_of_the_tree_are_counted() -> None:
    async def test() -> None:
        tree = await CountedTree.open(IN_MEMORY, SystemClock(), lambda error: None)
        tree.activity = Activity()
        asking = asyncio.ensure_future(tree.run(Exists("/nothing")))
        await asyncio.sleep(0)
        await tree.activity.settle()
        assert asking.done()
        await tree.close()

    asyncio.run(test())
