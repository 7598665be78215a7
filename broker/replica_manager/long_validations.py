"""Validates in worker processes the records whose validation would hold the event loop up.

That is mostly recompression, where `compression.type` of the topic is not the producer's codec. A request waits for it
before its append, so its connection takes up no other request meanwhile: the order of a producer's batches stays, and
an open connection has at most one job here. The network layer bounds those of closed ones. Everything that depends on
the state of the log is checked at the append.

Invariants: at most `WORKERS` jobs run at a time, the others wait as views of their frames in the order of arrival;
`done` is called once for each job; a job whose worker dies is done once more, and then refused.

Kafka: LogValidator, which Apache Kafka's request handlers run themselves.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.protocol.errors import ErrorCode
from odradek.storage.disk.ports import WorkerError
from odradek.storage.validation.validation_job import FinishedValidation, Refusal, validate
from odradek.timer.sliced_work import Wait, waited_for

if TYPE_CHECKING:
    from odradek.storage.disk.ports import WorkerPool
    from odradek.storage.validation.validation_job import ValidationJob, ValidRecords

log = logging.getLogger(__name__)

WORKERS: Final = 2
"""Cores that producers can occupy beside the one of the event loop."""

STARTS_MAX: Final = 2
"""How often a job is started whose worker dies."""

Done: TypeAlias = Callable[[FinishedValidation], None]


class LongValidations:
    """The long validations of one broker."""

    __slots__ = ("_running", "_waiting", "_workers")

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._running = 0
        self._waiting: deque[tuple[ValidationJob, Done]] = deque()

    def wait_for(self, job: ValidationJob) -> Generator[Wait, None, FinishedValidation]:
        """A step of a request that waits until the job is finished."""
        return waited_for(partial(self.submit, job))

    def submit(self, job: ValidationJob, done: Done) -> None:
        self._waiting.append((job, done))
        self._start_some()

    def _start_some(self) -> None:
        while self._waiting and self._running < WORKERS:
            job, done = self._waiting.popleft()
            self._running += 1
            self._start(job, done, starts_left=STARTS_MAX - 1)

    def _start(self, job: ValidationJob, done: Done, starts_left: int) -> None:
        ended = partial(self._ended, job, done, starts_left)
        self._workers.submit(validate, job._replace(records=bytes(job.records)), ended)

    def _ended(
        self, job: ValidationJob, done: Done, starts_left: int, result: ValidRecords | Refusal | OSError | WorkerError
    ) -> None:
        if isinstance(result, OSError | WorkerError):
            log.error("A worker process ended while it validated records for %s: %s", job.rules.partition, result)
            if starts_left:
                self._start(job, done, starts_left - 1)
                return
            result = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The records could not be validated", None)
        self._running -= 1
        self._start_some()
        done(FinishedValidation(job, result))
