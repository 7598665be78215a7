"""What clients were told by a broker that had failed, as a record for `broker.faults.replay`.

A disk fails at a moment of its own; which requests that meets is chance. The record has these requests, with the error
in the answer of each, or with the time that it took. Its replay by a broker that is well is without chance.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from odradek.broker.faults.record import MAX_TOPICS, Asked, FaultEvent, FaultRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.testing.observations.recorded_request import RecordedRequest

WAITING_APIS: Final = frozenset({"Fetch", "JoinGroup", "SyncGroup"})
"""Their answers may wait for other clients."""


def record_of(requests: Sequence[RecordedRequest], rule: str, *, slow_ms: int = 0) -> FaultRecord:
    """The requests with an error, and with `slow_ms` those that took as long or longer, among all that came."""
    calls: Counter[tuple[str, str, Asked]] = Counter()
    connections: dict[str, int] = {}
    events: list[FaultEvent] = []
    for request in sorted(requests, key=lambda each: each.received_ms):
        topics = tuple(sorted(request.topics)[:MAX_TOPICS])
        all_topics = _is_for_all_topics(request)
        counted = (request.client_id, request.api, () if request.api != "Metadata" else None if all_topics else topics)
        calls[counted] += 1
        connection = connections.setdefault(request.connection.connection_id, len(connections) + 1)
        fault = _fault(request, slow_ms)
        if fault is not None:
            events.append(
                FaultEvent(
                    number=len(events) + 1,
                    rule=rule,
                    client_id=request.client_id,
                    api=request.api,
                    version=request.version,
                    call=calls[counted],
                    topics=topics,
                    all_topics=all_topics,
                    connection=connection,
                    correlation_id=request.correlation_id,
                    fault=fault,
                )
            )
    return FaultRecord(events=tuple(events))


def _is_for_all_topics(request: RecordedRequest) -> bool:
    if request.api != "Metadata" or request.encoded_body is None:
        return False
    topics = request.body["topics"]
    return topics is None or (not topics and request.version == 0)


def _fault(request: RecordedRequest, slow_ms: int) -> dict[str, object] | None:
    if request.errors:
        return {"action": "error", "code": request.errors[0]}
    if slow_ms and request.duration_ms >= slow_ms and request.api not in WAITING_APIS:
        return {"action": "delay", "ms": round(request.duration_ms)}
    return None
