"""Measures the time of the event loop that a request takes, over all its steps, without what runs in between.

Kafka: RequestChannel.Request.requestThreadTimeNanos.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.broker.network.requests.request import RequestTimes
    from odradek.timer.sliced_work import Steps


def timed_steps(times: RequestTimes, work: Steps) -> Steps:
    """`work`, each step of which counts as time of the request."""
    try:
        while True:
            is_outermost = times.begin_step()
            try:
                step = next(work)
            except StopIteration:
                return
            finally:
                if is_outermost:
                    times.end_step()
            yield step
    finally:
        work.close()


class TimedCoroutine(Generator[object, object, None]):
    """`work`, of which the time between two awaits counts as time of the request. To be awaited once."""

    __slots__ = ("_times", "_work")

    def __init__(self, times: RequestTimes, work: Coroutine[object, object, None]) -> None:
        self._times = times
        self._work = work

    def __await__(self) -> Generator[object, object, None]:
        return self

    def send(self, value: object) -> object:
        return self._timed(partial(self._work.send, value))

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - its forms are those of Generator.throw
        return self._timed(partial(self._work.throw, *error))

    def close(self) -> None:
        self._work.close()

    def _timed(self, go_on: Callable[[], object]) -> object:
        is_outermost = self._times.begin_step()
        try:
            return go_on()
        finally:
            if is_outermost:
                self._times.end_step()
