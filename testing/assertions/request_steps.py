"""Selecting recorded requests, waiting for them, and assertions about them, as steps.

API, client id and number are compared inside the broker; topic and `where` in the process of the test, where requests
are decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.protocol.api import API
from odradek.testing.assertions.asking import Deadline, ask, check_name
from odradek.testing.assertions.request_questions import RequestsSlice
from odradek.testing.errors import WaitTimedOut
from odradek.testing.observations.recorded_request import RecordedRequest

if TYPE_CHECKING:
    from odradek.testing.assertions.asking import Steps

SHOWN_REQUESTS: Final = 10
"""Of the last requests, in the message of an assertion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which requests a test asks for. None takes all."""

    api: str | None = None
    """Kafka's name: `Produce`."""
    client_id: str | None = None
    topic: str | None = None
    """The body names it."""
    since: int = 0
    """Only requests that were answered after the one with this number."""
    where: Callable[[RecordedRequest], object] | None = None
    own: bool = False
    """With the requests of the broker itself."""

    def __post_init__(self) -> None:
        """Raises: ValueError for an API that Kafka does not have."""
        if self.api is not None:
            check_name(self.api, (spec.name for spec in API.values()), "API")

    def takes(self, request: RecordedRequest) -> bool:
        """Topic and `where`."""
        if self.topic is not None and self.topic not in request.topics:
            return False
        return self.where is None or bool(self.where(request))

    def __str__(self) -> str:
        parts = [self.api or "any request"]
        parts += [f"of client {self.client_id}"] if self.client_id is not None else []
        parts += [f"for topic {self.topic}"] if self.topic is not None else []
        parts += ["that `where` takes"] if self.where is not None else []
        parts += [f"after request {self.since}"] if self.since else []
        return " ".join(parts)


def number_of(since: RecordedRequest | int | None) -> int:
    """The number of a request; 0 without one."""
    if isinstance(since, RecordedRequest):
        return since.number
    return since or 0


def select(selection: Selection) -> Steps[list[RecordedRequest]]:
    """The requests that are recorded now, in the order of their answers."""
    part = yield from _slice(selection, selection.since)
    found = list(filter(selection.takes, part.requests))
    last_number = part.last_number
    while not part.is_complete and part.position < last_number:  # clients may be faster than this
        part = yield from _slice(selection, part.position)
        found += filter(selection.takes, part.requests)
    return found


def last_number() -> Steps[int]:
    """The number of the request that was answered last."""
    return ask(int, "last_request_number")


def clear() -> Steps[None]:
    """Forget the recorded requests."""
    yield from ask(type(None), "clear_requests")


def wait_for(selection: Selection, count: int, timeout_s: float) -> Steps[list[RecordedRequest]]:
    """The requests, when there are `count`. Raises: WaitTimedOut, BrokerStopped."""
    deadline = Deadline(timeout_s)
    found: list[RecordedRequest] = []
    position, is_complete = selection.since, False
    last_number: int | None = None
    """When the time is over: clients may be faster than this."""
    while len(found) < count:
        if deadline.is_over and (is_complete or (last_number is not None and position >= last_number)):
            what = yield from _what_is_there(selection)
            raise WaitTimedOut(
                f"Waited {deadline} for {selection}, {count} times: it was answered {_times(len(found))}{what}"
            )
        part = yield from _slice(selection, position, deadline.left_s if is_complete else 0)
        found += filter(selection.takes, part.requests)
        position, is_complete = part.position, part.is_complete
        if deadline.is_over and last_number is None:
            last_number = part.last_number
    return found


def assert_requested(selection: Selection, times: int | None) -> Steps[list[RecordedRequest]]:
    """The requests. Raises: AssertionError if there are none, or not exactly `times`."""
    found = yield from select(selection)
    if len(found) == times or (times is None and found):
        return found
    wanted = "at least once" if times is None else _times(times)
    what = yield from _what_is_there(selection)
    raise AssertionError(f"Expected {selection} {wanted}; it was answered {_times(len(found))}{what}")


def _slice(selection: Selection, position: int, wait_s: float = 0) -> Steps[RequestsSlice]:
    return ask(
        RequestsSlice,
        "recorded_requests",
        after=position,
        api=selection.api,
        client_id=selection.client_id,
        own=selection.own,
        wait_s=wait_s,
    )


def _what_is_there(selection: Selection) -> Steps[str]:
    """The counts of all requests, and the last ones."""
    everything = Selection(since=selection.since, own=selection.own)
    part = yield from _slice(everything, everything.since)
    requests, dropped, last_number = list(part.requests), part.dropped, part.last_number
    while not part.is_complete and part.position < last_number:
        part = yield from _slice(everything, part.position)
        requests += part.requests
    if not requests:
        return "; no request was recorded"
    counts = ", ".join(f"{api} {count}" for api, count in Counter(each.api for each in requests).most_common())
    lines = [f"\n  recorded: {counts}"]
    lines += [f"  {dropped} older requests were dropped"] if dropped else []
    lines += [f"    {line_of(request)}" for request in requests[-SHOWN_REQUESTS:]]
    return "\n".join(lines)


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def line_of(request: RecordedRequest) -> str:
    """The request in one line, with the error codes of its answer."""
    topics = f" {','.join(request.topics[:3])}{',...' if len(request.topics) > 3 else ''}" if request.topics else ""
    outcome = ", ".join(request.errors[:3]) or ("ok" if request.has_answer else "no answer")
    outcome += " (not sent)" if request.has_answer and not request.is_answer_sent else ""
    client = request.client_id or "-"
    return (
        f"{request.number} {client} {request.api} v{request.version}{topics}: {outcome} ({request.duration_ms:.1f} ms)"
    )
