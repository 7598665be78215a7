from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.testing.assertions.asking import answered
from odradek.testing.assertions.request_questions import RequestsSlice
from odradek.testing.assertions.request_steps import Selection, select, wait_for
from odradek.testing.errors import WaitTimedOut
from tests.support.in_process.observed_broker import ObservedBroker, produce_fields
from tests.support.wire.requests import batch


def test_a_wait_for_requests(observed: ObservedBroker) -> None:
    observed.meanwhile(
        lambda: observed.dispatch(ApiKey.METADATA, 12, topics=[{"name": "t"}]),
        lambda: observed.dispatch(ApiKey.PRODUCE, 9, **produce_fields("t", batch(b"a"))),
        lambda: observed.dispatch(ApiKey.PRODUCE, 9, **produce_fields("t", batch(b"b"))),
    )
    found = observed.wait_for_request("Produce", count=2)
    assert [record.value for request in found for _, record in request.records()] == [b"a", b"b"]


def test_a_wait_that_times_out_says_what_was_requested(observed: ObservedBroker) -> None:
    observed.call(ApiKey.METADATA, 12, topics=[{"name": "x"}], client_id="app", allow_auto_topic_creation=False)
    with pytest.raises(WaitTimedOut) as error:
        observed.wait_for_request("Produce", topic="t", count=2, timeout=0.01)
    first, counts, line = str(error.value).splitlines()
    assert first == "Waited 0.01 s for Produce for topic t, 2 times: it was answered never"
    assert counts == "  recorded: Metadata 1"
    assert "app Metadata v12 x: UNKNOWN_TOPIC_OR_PARTITION" in line


def test_assertions_about_requests(observed: ObservedBroker) -> None:
    with pytest.raises(AssertionError, match="Expected Produce at least once; it was answered never; no request was"):
        observed.assert_requested("Produce")
    observed.assert_requested("Produce", times=0)
    observed.produce("t", b"a")
    (request,) = observed.assert_requested("Produce", topic="t", times=1)
    assert request.errors == ()
    with pytest.raises(AssertionError, match=r"Expected Produce of client me 2 times; it was answered once\n"):
        observed.assert_requested("Produce", client_id="me", times=2)


def test_a_misspelt_api_is_refused(observed: ObservedBroker) -> None:
    with pytest.raises(ValueError, match="There is no API 'produce'; Kafka's names are: AddOffsetsToTxn, "):
        observed.requests("produce")


class _BusyBroker:
    """A broker with ten requests whose clients are faster than the reader."""

    def __init__(self) -> None:
        self.slices = 0

    def ask(self, name: str, /, **arguments: object) -> object:
        after = arguments["after"]
        assert isinstance(after, int)
        self.slices += 1
        assert self.slices < 1000, "the last request is never reached"
        return RequestsSlice(position=after + 1, last_number=10 * self.slices, is_complete=False)


def test_clients_that_are_faster_hold_up_neither_a_read_nor_the_end_of_a_wait() -> None:
    busy = _BusyBroker()
    assert answered(busy, select(Selection())) == []
    assert busy.slices == 10
    busy = _BusyBroker()
    with pytest.raises(WaitTimedOut, match="no request was recorded"):
        answered(busy, wait_for(Selection(), 1, timeout_s=0))
