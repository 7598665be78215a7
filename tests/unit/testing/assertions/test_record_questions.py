from __future__ import annotations

from odradek.protocol.api import ApiKey
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
