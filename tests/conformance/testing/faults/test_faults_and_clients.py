"""Each fault as four clients see it, and the same again from the record of what happened.

A row says what a client does with one fault: its answer, the records in the log afterwards, and how many of its
requests the fault changed. All clients have long time-outs and no idempotence, so that the row shows the fault alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from odradek.broker.faults.rules.rule_texts import ACTIONS
from odradek.broker.faults.rules.shorthands import SHORTHANDS
from odradek.testing import Broker
from tests.support.loads.fault_runs import Outcome, Seen, run
from tests.support.loads.faulted_clients import (
    CLIENT_ID,
    PATIENT_MS,
    Aiokafka,
    FaultedClient,
    Java,
    KafkaPython,
    Librdkafka,
)

NAMES = ("librdkafka", "aiokafka", "kafka-python", "java")
Keys = dict[str, object]

SHORT_TIMEOUT_MS = 3_000
"""For clients that wait until then. Other requests have to be answered in this time, on a busy machine, too."""


@dataclass(frozen=True, kw_only=True)
class Row:
    work: str
    fault: str
    keys: Keys
    seen: tuple[Seen, ...]
    """By client, in the order of `NAMES`."""
    at_least_s: float = 0
    request_timeout_ms: int = PATIENT_MS
    is_topic_there: bool = True

    @property
    def name(self) -> str:
        return f"{self.work}-{self.fault}"


def same(answer: str, records: int, changed: int = 1) -> tuple[Seen, ...]:
    return tuple(Seen(answer=answer, records=records, changed=changed) for _ in NAMES)


def each(*answers: str, records: int, changed: int = 1) -> tuple[Seen, ...]:
    return tuple(Seen(answer=answer, records=records, changed=changed) for answer in answers)


PRODUCE, FETCH, COMMIT, END = (
    {"api": "Produce", "times": 1},
    {"api": "Fetch", "times": 1},
    {"api": "OffsetCommit", "times": 1},
    {"api": "EndTxn", "times": 1},
)

METADATA = {"topic": "t", "times": 1}
"""A client's first Metadata names no topics, or this one if a record was sent soon enough."""

ROWS = [
    Row(work="produce", fault="not_leader", keys={"api": "Produce", "times": 2}, seen=same("offset 0", 1, changed=2)),
    Row(work="produce", fault="leader_not_available", keys={"times": 1}, seen=same("offset 0", 1)),
    # The first answer says that there is no such topic, and the second one says so again although it was created.
    Row(work="produce", fault="stale_metadata", keys=METADATA, is_topic_there=False, seen=same("offset 0", 1)),
    Row(work="produce", fault="isr_shrunk", keys=PRODUCE, seen=same("offset 0", 1)),
    Row(
        work="produce",
        fault="not_authorized",
        keys=PRODUCE,
        seen=each(
            "TOPIC_AUTHORIZATION_FAILED",
            "TopicAuthorizationFailedError",
            "TopicAuthorizationFailedError",
            "TopicAuthorizationException",
            records=0,
        ),
    ),
    Row(work="produce", fault="unknown_topic", keys=PRODUCE, seen=same("offset 0", 1)),
    Row(work="produce", fault="storage_error", keys=PRODUCE, seen=same("offset 0", 1)),
    Row(
        work="produce",
        fault="error",
        keys=PRODUCE | {"code": "MESSAGE_TOO_LARGE"},
        seen=each(
            "MSG_SIZE_TOO_LARGE",
            "MessageSizeTooLargeError",
            "MessageSizeTooLargeError",
            "RecordTooLargeException",
            records=0,
        ),
    ),
    # The request took effect and its client does not know: each retry is a duplicate.
    Row(work="produce", fault="isr_shrunk_after_append", keys=PRODUCE, seen=same("offset 1", 2)),
    Row(work="produce", fault="drop_after_apply", keys=PRODUCE, seen=same("offset 1", 2)),
    Row(work="produce", fault="half_frame", keys=PRODUCE, seen=same("offset 1", 2)),
    Row(work="produce", fault="duplicate", keys=PRODUCE, seen=same("offset 1", 2)),
    Row(work="produce", fault="drop", keys=PRODUCE, seen=same("offset 0", 1)),
    Row(work="produce", fault="reset", keys=PRODUCE, seen=same("offset 0", 1)),
    Row(
        work="produce",
        fault="black_hole",
        keys=PRODUCE,
        request_timeout_ms=SHORT_TIMEOUT_MS,  # aiokafka has none for the delivery beside it
        at_least_s=0.9 * SHORT_TIMEOUT_MS / 1000,
        seen=(
            Seen(answer="offset 0", records=1, changed=1),
            Seen(answer="RequestTimedOutError", records=0, changed=1),
            Seen(answer="offset 0", records=1, changed=1),
            Seen(answer="offset 0", records=1, changed=1),
        ),
    ),
    Row(work="produce", fault="delay", keys=PRODUCE | {"ms": 300}, at_least_s=0.3, seen=same("offset 0", 1)),
    # The answer comes at once; the next request waits.
    Row(
        work="produce_two",
        fault="throttle",
        keys=PRODUCE | {"ms": 300},
        at_least_s=0.3,
        seen=same("offset 1", 2),
    ),
    Row(
        work="produce",
        fault="slow_bytes",
        keys=PRODUCE | {"bytes_per_second": 200},
        at_least_s=0.2,
        seen=same("offset 0", 1),
    ),
    Row(work="fetch", fault="not_leader", keys={"api": "Fetch", "times": 2}, seen=same("value value", 1, changed=2)),
    Row(work="fetch", fault="offset_out_of_range", keys=FETCH, seen=same("value value", 1)),
    Row(work="fetch", fault="drop", keys=FETCH, seen=same("value value", 1)),
    Row(
        work="fetch",
        fault="half_answer",
        keys=FETCH,
        request_timeout_ms=SHORT_TIMEOUT_MS,  # kafka-python waits for the other half
        seen=each("value value", "value value", "value value", "IllegalArgumentException", records=1),
    ),
    Row(
        work="fetch",
        fault="corrupt_crc",
        keys=FETCH,
        seen=each("_BAD_MSG", "CorruptRecordException", "CorruptRecordError", "KafkaException", records=1),
    ),
    Row(work="commit", fault="coordinator_loading", keys=COMMIT, seen=same("committed", 1)),
    Row(work="commit", fault="coordinator_not_available", keys={"times": 1}, seen=same("committed", 1)),
    Row(work="commit", fault="coordinator_moved", keys=COMMIT, seen=same("committed", 1)),
    Row(
        work="commit",
        fault="rebalance",
        keys=COMMIT,
        seen=each(
            "REBALANCE_IN_PROGRESS",
            "CommitFailedError",
            "CommitFailedError",
            "RebalanceInProgressException",
            records=1,
        ),
    ),
    Row(
        work="commit",
        fault="member_kicked",
        keys=COMMIT,
        request_timeout_ms=SHORT_TIMEOUT_MS,  # aiokafka joins again beside the old member before it closes
        seen=each("UNKNOWN_MEMBER_ID", "CommitFailedError", "CommitFailedError", "CommitFailedException", records=1),
    ),
    Row(
        work="transact",
        fault="producer_fenced",
        keys=END,
        seen=each("_FENCED", "KafkaError", "ProducerFencedError", "ProducerFencedException", records=1),
    ),
    # aiokafka commits the transaction although its only record was refused.
    Row(
        work="transact",
        fault="invalid_producer_epoch",
        keys=PRODUCE,
        seen=each("_FENCED", "committed", "ProducerFencedError", "InvalidProducerEpochException", records=0),
    ),
    Row(work="transact", fault="coordinator_moved", keys=END, seen=same("committed", 1)),
    # librdkafka and aiokafka leave it to the application to look for the controller again.
    Row(
        work="create",
        fault="not_controller",
        keys={"times": 1},
        is_topic_there=False,
        seen=each("NOT_CONTROLLER", "NotControllerError", "created", "created", records=0),
    ),
]


def test_every_fault_has_a_row() -> None:
    assert {*ACTIONS, *SHORTHANDS} == {row.fault for row in ROWS}


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], tuple[Outcome, Outcome]]:
    """By row and client: with the fault, and from the record. The clients run at the same time."""
    java = Java()
    clients = dict(zip(NAMES, (Librdkafka(), Aiokafka(), KafkaPython(), java), strict=True))
    found: dict[tuple[str, str], tuple[Outcome, Outcome]] = {}
    try:
        with ThreadPoolExecutor(len(clients)) as pool:
            for name, results in [(name, pool.submit(run_all, client)) for name, client in clients.items()]:
                found |= {(row, name): outcome for row, outcome in results.result().items()}
    finally:
        java.close()
    return found


def run_all(client: FaultedClient) -> dict[str, tuple[Outcome, Outcome]]:
    found = {}
    settings = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    with Broker(settings) as broker:
        for row in ROWS:
            first = run_row(
                broker, client, row, lambda row=row: broker.faults.add(row.fault, client_id=CLIENT_ID, **row.keys)
            )
            record = broker.faults.record()
            again = run_row(broker, client, row, lambda record=record: broker.faults.replay(record))
            broker.faults.assert_replayed()
            found[row.name] = first, again
    return found


def run_row(broker: Broker, client: FaultedClient, row: Row, begin: Callable[[], object]) -> Outcome:
    return run(
        broker,
        client,
        row.work,
        begin,
        is_topic_there=row.is_topic_there,
        request_timeout_ms=row.request_timeout_ms,
    )


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_client_does(row: Row, client: str, outcomes: dict[tuple[str, str], tuple[Outcome, Outcome]]) -> None:
    (seen, took_s, sequence), (again, _, sequence_again) = outcomes[row.name, client]
    assert seen == row.seen[NAMES.index(client)]
    assert took_s >= row.at_least_s
    assert (again, sequence_again) == (seen, sequence)
