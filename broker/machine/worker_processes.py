"""Processes for CPU-bound work: compaction and recovery in a thread would starve the event loop through the GIL.

A running job has a process to itself, and a thread that waits for it without the GIL. A process is started when none is
idle, is up after about 0.1 s, and is ended after `IDLE_S` without a job. The callers limit how many jobs run at a time.

Invariants: no process is forked (a fork would inherit locks and descriptors); none outlives the broker, see
`storage.disk.worker`; cancelling kills the process, and the job's owner removes the files it was writing.

Implements `storage.disk.ports.WorkerPool`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar, cast

from odradek.storage.disk.ports import WorkerError
from odradek.storage.disk.worker import MessageKind, read_message, write_message

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

T = TypeVar("T")
ArgumentT = TypeVar("ArgumentT")

IDLE_S: Final = 10
"""How long a process waits for its next job. Recovery submits many in a row, compaction a few."""

COMMAND: Final = (sys.executable, "-c", "from odradek.storage.disk.worker import main; main()")
"""Not `-m`: classes pickled there would belong to the module `__main__`, which is another one here."""

_INHERITED: Final = frozenset(("HOME", "LANG", "LANGUAGE", "PATH", "TMPDIR", "TZ", "VIRTUAL_ENV"))
_PREFIXES: Final = ("COV", "DYLD_", "LC_", "LD_", "MALLOC_", "PYTHON")
"""Of the variables that the interpreter, the C library and measurements of test coverage read."""

logger = logging.getLogger(__name__)


class WorkerProcesses:
    """The processes of one broker. Its attributes are changed on the loop only."""

    __slots__ = ("_idle", "_idle_s", "_is_closed", "_loop", "_workers")

    def __init__(self, loop: asyncio.AbstractEventLoop, *, idle_s: float = IDLE_S) -> None:
        self._loop = loop
        self._idle_s = idle_s
        self._is_closed = False
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        """The longest idle one first, so that it is the first to end."""

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> Job:
        """Run `work(argument, report)` in a process, then `done(result)` on the loop. After `close` nothing is run."""

        def finish(result: object) -> None:
            if worker is not None:
                self._release(worker)
            done(cast("T | OSError | WorkerError", result))

        worker = self._idle.pop() if self._idle else self._start_worker()
        job = Job((work, argument), finish, on_report)
        if worker is not None:
            worker.jobs.put(job)
            worker.current = job
        elif not self._is_closed:
            self._loop.call_soon(finish, WorkerError("the system allows no more threads"))
        return job

    def _start_worker(self) -> _Worker | None:
        """None if the system allows no more threads, or after `close`."""
        if self._is_closed:
            return None
        try:
            worker = _Worker(self._loop)
        except RuntimeError:
            return None
        self._workers.add(worker)
        return worker

    @property
    def counts(self) -> tuple[int, int]:
        """The worker processes, and those that are busy."""
        return len(self._workers), len(self._workers) - len(self._idle)

    def close(self) -> None:
        """Kill what is running and wait for the processes to end. Results that come after this are dropped."""
        self._is_closed = True
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.thread.join()
        self._workers.clear()
        self._idle.clear()

    @property
    def process_ids(self) -> list[int]:
        """The ids of the running processes."""
        return [worker.process_id for worker in self._workers if worker.process_id]

    def _release(self, worker: _Worker) -> None:
        if worker not in self._workers:
            return  # closed meanwhile
        worker.current = None
        self._idle.append(worker)
        jobs_done = worker.jobs_done = worker.jobs_done + 1

        def end_if_idle() -> None:
            if worker.jobs_done == jobs_done and worker in self._idle:
                self._idle.remove(worker)
                self._workers.discard(worker)
                worker.stop()

        self._loop.call_later(self._idle_s, end_if_idle)


class Job:
    """One job. `cancel` kills the process that runs it, or that gets it later."""

    __slots__ = ("_is_cancelled", "_lock", "_process", "finish", "message", "on_report")

    def __init__(
        self, message: object, finish: Callable[[object], None], on_report: Callable[[object], None] | None
    ) -> None:
        self.message = message
        self.finish = finish
        self.on_report = on_report
        self._process: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False
        self._lock = threading.Lock()

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.kill()

    def given_to(self, process: subprocess.Popen[bytes] | None) -> None:
        """Set the process that runs the job; None at its end, because the process may run another job then."""
        with self._lock:
            self._process = process
            if process is not None and self._is_cancelled:
                process.kill()


class _Worker:
    """A thread with a process: the thread sends jobs to the process and waits for the results."""

    __slots__ = ("_loop", "_process", "current", "jobs", "jobs_done", "thread")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.current: Job | None = None
        self.jobs_done = 0
        self._loop = loop
        self._process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self._serve, name="worker", daemon=True)
        self.thread.start()

    @property
    def process_id(self) -> int:
        """0 while there is no process."""
        process = self._process
        return 0 if process is None else process.pid

    def stop(self) -> None:
        if self.current is not None:
            self.current.cancel()
        self.jobs.put(None)

    # In the worker's thread

    def _serve(self) -> None:
        try:
            while (job := self.jobs.get()) is not None:
                self._post(job.finish, self._run(job))
        except RuntimeError:
            logger.debug("The result of a job came after the event loop was closed")
        finally:
            self._end_process()

    def _run(self, job: Job) -> object:
        try:
            process = self._process
            if process is None or process.poll() is not None:
                self._end_process()
                process = self._process = _start()
            job.given_to(process)
            try:
                write_message(cast("BinaryIO", process.stdin), job.message)
                return self._receive(job, cast("BinaryIO", process.stdout))
            finally:
                job.given_to(None)
        except (EOFError, BrokenPipeError):
            self._end_process()  # its pipes may close before it has ended
            return WorkerError("The worker process was killed or has died")
        except OSError as error:
            return WorkerError(f"The worker process could not be started: {error}")

    def _receive(self, job: Job, stream: BinaryIO) -> object:
        while True:
            kind, value = cast("tuple[MessageKind, object]", read_message(stream))
            match kind:
                case MessageKind.LOG:
                    name, level, text = cast("tuple[str, int, str]", value)
                    logging.getLogger(name).log(level, "%s", text)
                case MessageKind.REPORT:
                    if job.on_report is not None:
                        self._post(job.on_report, value)
                case MessageKind.RESULT | MessageKind.OS_ERROR:
                    return value
                case MessageKind.BUG:
                    return WorkerError(value)

    def _post(self, callback: Callable[[object], None], value: object) -> None:
        self._loop.call_soon_threadsafe(callback, value)

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):  # a job that the process did not read
                    cast("BinaryIO", stream).close()
            process.wait()


def _environment() -> dict[str, str]:
    """For a worker: what the interpreter reads, with the module search path of this process. The settings of a broker
    may be in its environment, with secrets among them; a worker needs none.
    """
    needed = {name: text for name, text in os.environ.items() if name in _INHERITED or name.startswith(_PREFIXES)}
    return {**needed, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )
