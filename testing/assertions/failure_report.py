"""What the broker saw during a test, for the report of a failed test: short lines, the newest last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.controller.model.topic_names import INTERNAL_TOPICS
from odradek.protocol.topic_partition import TopicPartition
from odradek.testing.assertions import transaction_steps
from odradek.testing.assertions.asking import ask
from odradek.testing.assertions.group_questions import view_of
from odradek.testing.assertions.group_steps import lines_of
from odradek.testing.assertions.request_steps import line_of
from odradek.testing.assertions.transaction_questions import views_of
from odradek.testing.node.questions.questions import question
from odradek.testing.observations.recorded_request import RecordedRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing.assertions.asking import Steps
    from odradek.testing.observations.observations import ObservedBroker

REQUESTS_MAX: Final = 20
TOPICS_MAX: Final = 20
GROUPS_MAX: Final = 10
WARNINGS_MAX: Final = 20
PARTITIONS_MAX: Final = 8
"""Of each topic."""

DECODED_BYTES_MAX: Final = 64 * 1024
"""A larger request is named without its topics and errors: decoding it would take long on the event loop."""


@question
async def failure_report(broker: ObservedBroker) -> str:
    """The text of a section of pytest's report."""
    sections = (
        ("requests", list(_requests(broker))),
        ("waiting", broker.observations.requests.unanswered[:REQUESTS_MAX]),
        ("topics", list(_topics(broker))),
        ("groups", list(_groups(broker))),
        ("open transactions", [transaction_steps.line_of(each) for each in views_of(broker) if each.is_open]),
        ("warnings and errors of the broker", broker.observations.warnings.lines[-WARNINGS_MAX:]),
    )
    return "\n".join(
        line for title, lines in sections for line in (f"{title}:", *(f"  {line}" for line in lines or ["none"]))
    )


def report() -> Steps[str]:
    """The same, asked by a test."""
    return ask(str, "failure_report")


def _requests(broker: ObservedBroker) -> Iterator[str]:
    recorder = broker.observations.requests
    clients = [request for request in recorder.after(0) if not request.connection.is_own_broker]
    if len(clients) > REQUESTS_MAX:
        yield f"(the last {REQUESTS_MAX} of {len(clients) + recorder.dropped})"
    for request in clients[-REQUESTS_MAX:]:
        yield _line_of(request)


def _line_of(request: RecordedRequest) -> str:
    if request.kept_bytes > DECODED_BYTES_MAX:
        return (
            f"{request.number} {request.client_id or '-'} {request.api} v{request.version}: {request.kept_bytes} bytes"
        )
    return line_of(request)


def _topics(broker: ObservedBroker) -> Iterator[str]:
    partitions = broker.services.metadata_cache.snapshot.partitions
    names = sorted(name for name in partitions if name not in INTERNAL_TOPICS)
    for name in names[:TOPICS_MAX]:
        logs = [_offsets(broker, TopicPartition(name, index)) for index in sorted(partitions[name])[:PARTITIONS_MAX]]
        more = f", {len(partitions[name]) - PARTITIONS_MAX} more" if len(partitions[name]) > PARTITIONS_MAX else ""
        yield f"{name}: {', '.join(logs)}{more}"
    if len(names) > TOPICS_MAX:
        yield f"and {len(names) - TOPICS_MAX} more"


def _offsets(broker: ObservedBroker, topic_partition: TopicPartition) -> str:
    hosted = broker.services.replica_manager.hosted(topic_partition)
    log = None if hosted is None else hosted.log
    if log is None:
        return f"{topic_partition.partition} has no replica here"
    stable = f", stable to {log.last_stable_offset}" if log.last_stable_offset < log.high_watermark else ""
    behind = f", committed to {log.high_watermark}" if log.high_watermark < log.log_end_offset else ""
    return f"{topic_partition.partition} has {log.log_start_offset}..{log.log_end_offset}{behind}{stable}"


def _groups(broker: ObservedBroker) -> Iterator[str]:
    names = sorted(group.group_id for group in broker.services.group_coordinator.groups)
    for name in names[:GROUPS_MAX]:
        yield from lines_of(view_of(broker, name))
    if len(names) > GROUPS_MAX:
        yield f"and {len(names) - GROUPS_MAX} more"
