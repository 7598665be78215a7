from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.testing.assertions.record_questions import SLICE_BYTES, topic_records
from tests.support.in_process.observed_broker import ObservedBroker, TransactionalClient


def test_outcomes_of_transactions(observed: ObservedBroker) -> None:
    client = TransactionalClient(observed, "id")
    client.send("t", b"aborted")
    client.end(commit=False)
    observed.transaction("id").wait_for_aborted()
    client.send("t", b"committed")
    client.end(commit=True)
    observed.transaction("id").wait_for_committed()
    client.send("t", b"open")
    observed.produce("t", b"plain")
    topic = observed.topic("t")
    assert [(record.text, record.transaction) for record in topic.records()] == [
        ("aborted", "aborted"),
        ("committed", "committed"),
        ("open", "open"),
        ("plain", None),
    ]
    assert topic.values(isolation="read_committed") == [b"committed"]
    client.end(commit=True)
    observed.transaction("id").wait_for_committed(2)
    assert topic.values(isolation="read_committed") == [b"committed", b"open", b"plain"]


def test_a_transaction_that_aborts_behind_an_open_one_is_aborted(observed: ObservedBroker) -> None:
    """Its records lie above the last stable offset, where consumers get no list of aborted transactions."""
    first, second = TransactionalClient(observed, "first"), TransactionalClient(observed, "second")
    first.send("t", b"open")
    second.send("t", b"aborted")
    second.end(commit=False)
    observed.transaction("second").wait_for_aborted()
    assert [record.transaction for record in observed.topic("t").records()] == ["open", "aborted"]


def test_deleted_records_are_not_read(observed: ObservedBroker) -> None:
    observed.produce("t", b"a", b"b", b"c")
    observed.call(
        ApiKey.DELETE_RECORDS,
        2,
        topics=[{"name": "t", "partitions": [{"partition_index": 0, "offset": 2}]}],
        timeout_ms=1_000,
    )
    assert observed.topic("t").values() == [b"c"]


def test_internal_topics_are_named_if_wanted(observed: ObservedBroker) -> None:
    TransactionalClient(observed, "id")
    assert observed.topics() == ["t"]
    assert observed.topics(internal=True) == ["__transaction_state", "t"]


def test_producers(observed: ObservedBroker) -> None:
    client = TransactionalClient(observed, "id")
    client.send("t", b"a", b"b")
    (producer,) = observed.producers("t", 0)
    assert (producer.producer_id, producer.last_sequence, producer.transaction_start_offset) == (
        client.producer["producer_id"],
        1,
        0,
    )
    client.end(commit=True)
    observed.transaction("id").wait_for_committed()
    (producer,) = observed.producers("t", 0)
    assert producer.transaction_start_offset is None


def test_many_records_come_in_slices(observed: ObservedBroker) -> None:
    for _ in range(8):
        observed.produce("t", *(b"x" * 1_000 for _ in range(100)))
    observed.asked.clear()
    assert len(observed.topic("t").records()) == 800
    batch_bytes = observed.topic("t").partitions[0].size_in_bytes // 8
    slices = observed.asked.count("topic_records")
    assert slices == -(-8 // (SLICE_BYTES // batch_bytes)) > 2
    sizes = [
        sum(len(piece.data) for piece in sliced.pieces)
        for sliced in (
            observed.inner.run(topic_records(observed, topic="t", positions={0: start}, isolation="read_uncommitted"))
            for start in (0, 200, 799)
        )
    ]
    assert sizes == [SLICE_BYTES, SLICE_BYTES, batch_bytes]
