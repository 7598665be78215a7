"""Questions about recorded requests: in slices, since a process may have to send them over a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.testing.node.questions.questions import question
from odradek.testing.observations.recorded_request import RecordedRequest
from odradek.testing.observations.waits import Change

if TYPE_CHECKING:
    from odradek.testing.observations.observations import ObservedBroker

SLICE_REQUESTS: Final = 500
SLICE_BYTES: Final = 1024 * 1024
"""Of the requests in one answer; the last one may exceed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsSlice:
    """Some requests. `position`: the number up to which this slice has looked."""

    requests: tuple[RecordedRequest, ...] = ()
    position: int
    is_complete: bool = True
    """There are no more now."""
    last_number: int = 0
    """Of the request that was answered last."""
    dropped: int = 0
    """Requests that the recorder has dropped because of its limits."""


@question
async def recorded_requests(
    broker: ObservedBroker,
    *,
    after: int,
    api: str | None = None,
    client_id: str | None = None,
    own: bool = False,
    wait_s: float = 0,
) -> RequestsSlice:
    """The next slice of the requests with numbers above `after`; those of the broker itself only if `own`. With
    `wait_s`, wait so long at most for one.

    Raises: BrokerStopped.
    """

    def look() -> RequestsSlice | None:
        found = _slice(broker, after, api, client_id, own)
        return found if found.requests or wait_s <= 0 else None

    found = await broker.observations.waits.until(look, (Change.REQUESTS,), wait_s)
    return found or _slice(broker, after, api, client_id, own)


def _slice(broker: ObservedBroker, after: int, api: str | None, client_id: str | None, own: bool) -> RequestsSlice:
    recorder = broker.observations.requests
    found: list[RecordedRequest] = []
    size = 0
    for request in recorder.after(after):
        if len(found) >= SLICE_REQUESTS or size >= SLICE_BYTES:
            return RequestsSlice(
                requests=tuple(found),
                position=found[-1].number,
                is_complete=False,
                last_number=recorder.last_number,
                dropped=recorder.dropped,
            )
        if (
            (api is None or request.api == api)
            and (client_id is None or request.client_id == client_id)
            and (own or not request.connection.is_own_broker)
        ):
            found.append(request)
            size += request.kept_bytes
    last = recorder.last_number
    return RequestsSlice(requests=tuple(found), position=last, last_number=last, dropped=recorder.dropped)


@question
async def last_request_number(broker: ObservedBroker) -> int:
    """The number of the request that was answered last; 0 before the first."""
    return broker.observations.requests.last_number


@question
async def clear_requests(broker: ObservedBroker) -> None:
    """Forget the recorded requests."""
    broker.observations.requests.clear()
