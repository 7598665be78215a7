"""Questions to a running broker, written once for callers that block and for callers that await.

A facade (`topics.py`, `requests.py`, ...) is made of generators that yield an `Ask` and get its answer. `answered` runs
one for a caller that blocks, `answered_later` for a coroutine. The broker answers a question on its own event loop, in
this process or in a child; so arguments and answers are plain values.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from odradek.timer.clock import SystemClock

T = TypeVar("T")

_CLOCK: Final = SystemClock()

DEFAULT_TIMEOUT_S: Final = 10.0
"""Of every wait."""


class Ask(NamedTuple):
    """One question, by its name."""

    name: str
    arguments: dict[str, object]


Steps = Generator[Ask, object, T]


class AsksNow(Protocol):
    """Implemented by `testing.Broker`."""

    def ask(self, name: str, /, **arguments: object) -> object:
        """The answer of the broker; errors of the question are raised here."""


class AsksLater(Protocol):
    """Implemented by `testing.AsyncBroker`."""

    def ask(self, name: str, /, **arguments: object) -> Awaitable[object]:
        """The same, for a coroutine."""


def check_name(name: str, names: Iterable[str], what: str) -> None:
    """Raises: ValueError if Kafka has no such name. A wait for a misspelt name would only time out."""
    known = sorted(names)
    if name not in known:
        raise ValueError(f"There is no {what} {name!r}; Kafka's names are: {', '.join(known)}")


def ask(kind: type[T], name: str, /, **arguments: object) -> Steps[T]:
    """Ask a question whose answer is a `kind`."""
    answer = yield Ask(name, arguments)
    if not isinstance(answer, kind):
        raise TypeError(f"the question {name} was answered with {answer!r}, not with a {kind.__name__}")
    return answer


def answered(broker: AsksNow, steps: Steps[T]) -> T:
    """Ask each question of the steps, and return their result."""
    answer: object = None
    while True:
        try:
            question = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = broker.ask(question.name, **question.arguments)


async def answered_later(broker: AsksLater, steps: Steps[T]) -> T:
    """The same, for a coroutine."""
    answer: object = None
    while True:
        try:
            question = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = await broker.ask(question.name, **question.arguments)


class Deadline:
    """The end of a wait, on the real clock: advancing the clock of the broker does not end it."""

    __slots__ = ("_end_ms", "_now_ms", "timeout_s")

    def __init__(self, timeout_s: float, now_ms: Callable[[], int] = _CLOCK.monotonic_ms) -> None:
        self.timeout_s = timeout_s
        self._now_ms = now_ms
        self._end_ms = now_ms() + int(timeout_s * 1000)

    @property
    def left_s(self) -> float:
        """At least 0."""
        return max(0, self._end_ms - self._now_ms()) / 1000

    @property
    def is_over(self) -> bool:
        return not self.left_s

    def __str__(self) -> str:
        return f"{self.timeout_s:g} s"
