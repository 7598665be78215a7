"""What real clients do, as the assertions of the test kit show it: with a broker in a thread and in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from odradek.testing import Broker
from odradek.testing.errors import BrokerStopped, WaitTimedOut
from tests.support.testing.client_kinds import KINDS, ClientKind, GroupClient

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module", params=[False, True], ids=["thread", "process"])
def started(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}, own_process=request.param) as broker:
        yield broker


@pytest.fixture
def broker(started: Broker) -> Broker:
    started.reset()
    return started


@pytest.fixture(params=KINDS, ids=[kind.name for kind in KINDS])
def client(request: pytest.FixtureRequest) -> ClientKind:
    kind: ClientKind = request.param
    return kind


Closing = Callable[[GroupClient], GroupClient]


@pytest.fixture
def closing() -> Iterator[Closing]:
    """Closes consumers also when the test fails."""
    with ExitStack() as stack:

        def closed_at_the_end(consumer: GroupClient) -> GroupClient:
            stack.callback(consumer.close)
            return consumer

        yield closed_at_the_end


def test_records_and_requests_of_all_codecs(broker: Broker, client: ClientKind) -> None:
    for codec in client.codecs:
        values = [f"{codec} {number}".encode() * 20 for number in range(3)]
        client.produce(broker.bootstrap_servers, codec, values, codec, "the producer")
        records = broker.topic(codec).wait_for(3)
        assert [record.value for record in records] == values
        assert {record.compression for record in records} == {codec}
        assert {record.key for record in records} == {b"k"}
        assert {record.headers for record in records} == {(("h", b"1"),)}
        requests = broker.assert_requested("Produce", topic=codec, client_id="the producer")
        assert [record.value for request in requests for _, record in request.records()] == values
        assert {error for request in requests for error in request.errors} == set()


def test_outcomes_of_transactions(broker: Broker, client: ClientKind) -> None:
    client.produce(broker.bootstrap_servers, "t", [b"plain"], "none", "p")
    transactions = client.transactions(broker.bootstrap_servers, "tx")
    try:
        for value, end in ((b"aborted", transactions.abort), (b"committed", transactions.commit)):
            transactions.begin()
            transactions.send("t", value)
            end()
        broker.transaction("tx").wait_for_aborted()
        broker.transaction("tx").wait_for_committed()
        transactions.begin()
        transactions.send("t", b"open")
        topic = broker.topic("t")
        assert [(record.text, record.transaction) for record in topic.records() if record.is_transactional] == [
            ("aborted", "aborted"),
            ("committed", "committed"),
            ("open", "open"),
        ]
        assert sorted(topic.values(isolation="read_committed")) == [b"committed", b"plain"]
        (transaction,) = broker.transactions()
        assert (transaction.state, transaction.partitions) == ("Ongoing", (("t", 0),))
        assert "tx: Ongoing" in broker.failure_report()
        assert transaction.producer_id in {each.producer_id for each in broker.producers("t", 0)}
        transactions.commit()
        topic.wait_for(3, isolation="read_committed")
    finally:
        transactions.close()


def test_rebalances_offsets_and_lag(broker: Broker, client: ClientKind, closing: Closing) -> None:
    bootstrap = broker.bootstrap_servers
    client.produce(bootstrap, "t", [b"%d" % number for number in range(5)], "none", "p")
    group = broker.group("g")
    first = closing(client.consumer(bootstrap, "g", "t", "first"))
    alone = group.wait_for_state("Stable", members=1)
    (member,) = alone.members
    assert (member.client_id, member.topics, member.assignment) == ("first", ("t",), {"t": (0,)})
    first.commit("t", 0, 3)
    committed = group.wait_for_offset("t", 0, 3).offsets["t", 0]
    assert (committed.offset, committed.lag) == (3, 2)
    assert committed.metadata.rstrip("\0") == "by test"  # confluent-kafka sends the end of its C string, too
    second = closing(client.consumer(bootstrap, "g", "t", "second"))
    both = group.wait_for_state("Stable", members=2)
    assert both.generation > alone.generation
    ids = {each.client_id: each.member_id for each in both.members}
    assert sorted(ids) == ["first", "second"]
    second.close()
    after = group.wait_for(lambda each: each.state == "Stable" and len(each.members) == 1)
    # A client may join once more after that: kafka-python does when its poll has ended before its join.
    assert [each.left for each in after.history if each.left] == [(ids["second"],)]
    first.close()
    empty = group.wait_for_state("Empty")
    assert [len(each.members) for each in empty.history if each.ended_ms][-1] == 0
    assert any(each.joined for each in empty.history)
    broker.assert_requested("LeaveGroup", client_id="first")


def test_a_broker_that_stops_ends_a_wait(started: Broker) -> None:
    with Broker(own_process=started._own_process) as broker:
        stop = threading.Timer(0.2, broker._node.stop)  # type: ignore[union-attr]
        stop.start()
        with pytest.raises(BrokerStopped):
            broker.topic("t").wait_for(timeout=30)
        stop.join()


def test_a_reset_ends_a_wait(broker: Broker) -> None:
    waiting = broker.ask_soon("group_view", group_id="g", after=1_000, wait_s=30)
    broker.reset()
    with pytest.raises(BrokerStopped, match="The broker was reset before it answered"):
        waiting.result(30)


def test_a_wait_that_times_out_is_short(broker: Broker, client: ClientKind) -> None:
    client.produce(broker.bootstrap_servers, "t", [b"a"], "none", "p")
    with pytest.raises(WaitTimedOut, match="2 records in topic t: there is 1"):
        broker.topic("t").wait_for(2, timeout=0.05)
