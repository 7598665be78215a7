from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.testing.assertions.asking import answered
from odradek.testing.assertions.record_questions import RecordsSlice
from odradek.testing.assertions.topic_steps import Reading, read, wait_for
from odradek.testing.errors import BrokerStopped, NoSuchTopic, TooManyRecords, TopicDeleted, WaitTimedOut
from tests.support.in_process.observed_broker import ObservedBroker, TransactionalClient, produce_fields
from tests.support.wire.requests import batch


def test_a_part_of_a_batch(observed: ObservedBroker) -> None:
    observed.produce("t", *(b"%d" % number for number in range(10)))
    assert observed.topic("t").values(start=3, end=5) == [b"3", b"4"]
    assert observed.topic("t").values(start={0: 8}) == [b"8", b"9"]


def test_a_topic_that_does_not_exist(observed: ObservedBroker) -> None:
    with pytest.raises(NoSuchTopic, match="There is no topic u; there are: t"):
        observed.topic("u").records()
    with pytest.raises(NoSuchTopic, match="There is no topic u; there are: t"):
        observed.topic("u").describe()


def producing(observed: ObservedBroker, *values: bytes) -> None:
    observed.meanwhile(
        *(
            lambda value=value: observed.dispatch(ApiKey.PRODUCE, 9, **produce_fields("t", batch(value)))
            for value in values
        )  # type: ignore[misc]
    )


def test_a_wait_ends_when_the_records_are_there(observed: ObservedBroker) -> None:
    producing(observed, b"a", b"b", b"c")
    assert [record.value for record in observed.topic("t").wait_for(3)] == [b"a", b"b", b"c"]


def test_a_wait_reads_only_what_is_new(observed: ObservedBroker) -> None:
    observed.produce("t", b"a")
    producing(observed, b"b")
    observed.topic("t").wait_for(2)
    assert observed.asked.count("topic_records") == 2


def test_a_wait_for_some_records(observed: ObservedBroker) -> None:
    producing(observed, b"a", b"b", b"a")
    records = observed.topic("t").wait_for(2, where=lambda record: record.value == b"a")
    assert [record.offset for record in records] == [0, 2]


def test_a_wait_for_committed_records(observed: ObservedBroker) -> None:
    client = TransactionalClient(observed, "id")
    client.send("t", b"a")
    observed.meanwhile(
        lambda: observed.dispatch(ApiKey.END_TXN, 3, transactional_id="id", committed=True, **client.producer)  # type: ignore[func-returns-value]
    )
    (record,) = observed.topic("t").wait_for(1, isolation="read_committed")
    assert record.transaction == "committed"


def test_a_wait_for_a_topic_that_is_created_meanwhile(observed: ObservedBroker) -> None:
    observed.meanwhile(
        lambda: observed.dispatch(
            ApiKey.CREATE_TOPICS,
            7,
            topics=[{"name": "u", "num_partitions": 1, "replication_factor": 1}],
            timeout_ms=5_000,
        )
    )
    observed.topic("u").wait_until_created()
    assert observed.topic("u").records() == []


def test_a_wait_that_times_out_says_what_is_there(observed: ObservedBroker) -> None:
    observed.produce("t", b"a", b"x", key=b"k")
    with pytest.raises(WaitTimedOut) as error:
        observed.topic("t").wait_for(2, where=lambda record: record.value == b"a", timeout=0.01)
    assert str(error.value).splitlines() == [
        "Waited 0.01 s for 2 records in topic t: there is 1",
        "    0@0 k=a",
        "  and among the records that `where` does not take:",
        "    0@1 k=x",
    ]
    with pytest.raises(WaitTimedOut, match=r"1 record in topic u: there is no such topic; there are: t"):
        observed.topic("u").wait_for(timeout=0.01)


def delete(observed: ObservedBroker) -> None:
    observed.dispatch(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "t"}], timeout_ms=5_000)


def test_a_wait_for_records_of_a_topic_that_is_deleted_meanwhile(observed: ObservedBroker) -> None:
    observed.produce("t", b"a")
    observed.meanwhile(lambda: delete(observed))
    with pytest.raises(TopicDeleted, match="Topic t was deleted after 1 of its records were read"):
        observed.topic("t").wait_for(2)
    observed.topic("t").wait_until_deleted()


def test_a_broker_that_stops_ends_a_wait(observed: ObservedBroker) -> None:
    observed.meanwhile(lambda: observed.observations.close("The broker has stopped: test"))
    with pytest.raises(BrokerStopped, match="The broker has stopped: test"):
        observed.topic("t").wait_for()
    with pytest.raises(BrokerStopped):
        observed.topic("t").wait_for()


def test_after_a_wait_no_partition_has_subscribers(observed: ObservedBroker) -> None:
    producing(observed, b"a")
    observed.topic("t").wait_for()
    with pytest.raises(WaitTimedOut):
        observed.topic("t").wait_for(9, timeout=0.01)
    assert [len(each.news) for each in observed.services.replica_manager.online_partitions()] == [0]
    assert observed.observations.waits.waiting_count == 0


def reading(**limits: int) -> Reading:
    return Reading("t", partition=None, isolation="read_uncommitted", start=None, end=None, where=None, **limits)


def test_limits_of_one_call(observed: ObservedBroker) -> None:
    observed.produce("t", b"12", b"34", b"56")
    for limits in ({"records_max": 3}, {"bytes_max": 6}):
        assert len(answered(observed, read(reading(**limits)))) == 3
    for limits in ({"records_max": 2}, {"bytes_max": 5}):
        with pytest.raises(TooManyRecords, match=r"read one partition, or offsets from `start` to `end`"):
            answered(observed, read(reading(**limits)))


def test_a_topic_that_is_created_again_is_another_one(observed: ObservedBroker) -> None:
    observed.produce("t", b"a")
    halfway = reading()
    answered(observed, halfway.next_slice())
    observed.inner.delete_topic("t")
    observed.inner.create_topic("t")
    with pytest.raises(TopicDeleted, match="Topic t was deleted and created again after 1 of its records were read"):
        answered(observed, halfway.next_slice())


class _BusyTopic:
    """A topic with ten records whose producer is faster than the reader."""

    def __init__(self) -> None:
        self.slices = 0

    def ask(self, name: str, /, **arguments: object) -> object:
        if name == "topics":
            return ["t"]
        positions = arguments["positions"]
        assert isinstance(positions, dict)
        self.slices += 1
        assert self.slices < 100, "the end of the topic is never reached"
        following = {0: positions.get(0, 0) + 1}
        return RecordsSlice(topic_id=b"t", positions=following, ends={0: 10 * self.slices}, is_complete=False)


def test_a_producer_that_is_faster_holds_up_neither_a_read_nor_the_end_of_a_wait() -> None:
    busy = _BusyTopic()
    assert answered(busy, read(_reading())) == []
    assert busy.slices == 10
    busy = _BusyTopic()
    with pytest.raises(WaitTimedOut, match="Waited 0 s for 1 record in topic t: there are 0"):
        answered(busy, wait_for(_reading(), 1, timeout_s=0))
    assert busy.slices == 10


def _reading() -> Reading:
    return Reading("t", partition=None, isolation="read_uncommitted", start=0, end=None, where=None)
