from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from odradek.broker.machine.worker_processes import WorkerProcesses
from odradek.storage.disk.ports import WorkerError
from tests.support.async_test import async_test
from tests.unit.broker.machine.worker_jobs import (
    Report,
    environment,
    fail,
    never_end,
    print_and_end,
    process_id,
    stumble,
)

T = TypeVar("T")


class Workers:
    """The pool, with results as futures."""

    def __init__(self, idle_s: float = 60) -> None:
        self.loop = asyncio.get_running_loop()
        self.pool = WorkerProcesses(self.loop, idle_s=idle_s)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.close()

    def result(self, work: Callable[[T, Report], object], argument: T) -> asyncio.Future[object]:
        done: asyncio.Future[object] = self.loop.create_future()
        self.pool.submit(work, argument, done.set_result)
        return done


@async_test
async def test_work_runs_in_another_process_and_its_reports_and_log_lines_come_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Workers() as workers:
        done: asyncio.Future[object] = workers.loop.create_future()
        reports: list[object] = []
        workers.pool.submit(process_id, 3, done.set_result, reports.append)
        assert await done != os.getpid()
        assert reports == [3]
        assert "job 3" in caplog.messages


@async_test
async def test_a_job_for_which_there_is_no_thread_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with Workers() as workers:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert isinstance(await workers.result(process_id, 3), WorkerError)
        assert await workers.result(process_id, 3) != os.getpid()


@async_test
async def test_nothing_is_run_after_the_end() -> None:
    with Workers() as workers:
        pass
    never = workers.result(process_id, 3)
    await asyncio.sleep(0)
    assert workers.pool.counts == (0, 0)
    assert not never.done()


@async_test
async def test_settings_in_the_environment_of_the_broker_are_not_in_that_of_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD_ENCODER_SECRET", "secret")
    monkeypatch.setenv("A_VARIABLE_OF_A_PROVIDER", "secret")
    monkeypatch.setenv("TZ", "UTC")
    with Workers() as workers:
        found = await workers.result(environment, None)
    assert isinstance(found, dict)
    assert "secret" not in found.values()
    assert {"PATH", "PYTHONPATH", "TZ"} <= found.keys()


@async_test
async def test_an_idle_process_gets_the_next_job_and_two_jobs_at_a_time_have_two_processes() -> None:
    with Workers() as workers:
        first = await workers.result(process_id, 1)
        assert await workers.result(process_id, 2) == first
        both = await asyncio.gather(workers.result(process_id, 3), workers.result(process_id, 4))
        assert first in both
        assert len(set(both)) == 2


@async_test
async def test_errors_are_results_and_the_process_goes_on() -> None:
    with Workers() as workers:
        error = await workers.result(fail, None)
        assert isinstance(error, OSError)
        assert error.errno == 5
        bug = await workers.result(stumble, "the key")
        assert isinstance(bug, WorkerError)
        assert "KeyError: 'the key'" in str(bug)
        assert await workers.result(process_id, 1) == workers.pool.process_ids[0]


@async_test
async def test_output_of_a_job_is_no_message() -> None:
    with Workers() as workers:
        assert await workers.result(print_and_end, None) == "done"


@async_test
async def test_cancelling_kills_the_process_and_the_next_job_gets_another() -> None:
    with Workers() as workers:
        done: asyncio.Future[object] = workers.loop.create_future()
        begun: asyncio.Future[object] = workers.loop.create_future()
        job = workers.pool.submit(never_end, None, done.set_result, begun.set_result)
        await begun
        killed = workers.pool.process_ids[0]
        job.cancel()
        assert isinstance(await done, WorkerError)
        assert await workers.result(process_id, 1) != killed
        job.cancel()  # long over, and not its process any more
        assert isinstance(await workers.result(process_id, 2), int)


@async_test
async def test_a_job_cancelled_before_it_began_ends_as_well() -> None:
    with Workers() as workers:
        done: asyncio.Future[object] = workers.loop.create_future()
        workers.pool.submit(never_end, None, done.set_result).cancel()
        assert isinstance(await done, WorkerError)


@async_test
async def test_a_process_that_is_killed_is_an_error_of_its_job() -> None:
    with Workers() as workers:
        done: asyncio.Future[object] = workers.loop.create_future()
        begun: asyncio.Future[object] = workers.loop.create_future()
        workers.pool.submit(never_end, None, done.set_result, begun.set_result)
        await begun
        os.kill(workers.pool.process_ids[0], signal.SIGKILL)
        assert isinstance(await done, WorkerError)


@async_test
async def test_idle_processes_end() -> None:
    with Workers(idle_s=0) as workers:
        await workers.result(process_id, 1)
        [worker] = workers.pool._workers
        await asyncio.to_thread(worker.thread.join)
        assert workers.pool.process_ids == []


@async_test
async def test_closing_kills_running_jobs() -> None:
    with Workers() as workers:
        begun: asyncio.Future[object] = workers.loop.create_future()
        workers.pool.submit(never_end, None, lambda result: None, begun.set_result)
        await begun
        process = workers.pool.process_ids[0]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@async_test
async def test_a_worker_ends_with_its_broker() -> None:
    """In the middle of a job: it notices that its stdin is closed."""
    with Workers() as workers:
        done: asyncio.Future[object] = workers.loop.create_future()
        begun: asyncio.Future[object] = workers.loop.create_future()
        workers.pool.submit(never_end, None, done.set_result, begun.set_result)
        await begun
        [worker] = workers.pool._workers
        process = worker._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        assert isinstance(await done, WorkerError)
        assert await asyncio.to_thread(process.wait) == 0
