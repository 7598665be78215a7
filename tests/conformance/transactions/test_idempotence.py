"""Idempotence where requests are duplicated, reordered and cut off, and the broker starts again in between.

After a restart Apache Kafka knows the last batch of each producer, which is what a snapshot holds. So does Odradek
after a clean stop; after a kill it has read the log and knows the last five.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.storage.producers.producer_state import BATCHES_RETAINED
from tests.conformance.transactions.idempotent_producers import (
    ConfluentIdempotence,
    IdempotentProducer,
    JavaIdempotence,
)
from tests.conformance.transcripts.test_transcripts_produce import produce
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.loads.producer_model import Answer, ProducerModel, Sent
from tests.support.loads.transactional_clients import ConfluentTransactions, JavaTransactions
from tests.support.waiting import eventually
from tests.support.wire.fault_proxy import FaultProxy, behind_proxy
from tests.support.wire.faults import Fault, RandomFaults
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

NewBroker = Callable[..., Broker]
MakeBroker = Callable[[Path, dict[str, str]], Broker]

SMALL_SEGMENTS = {"log.segment.bytes": "2000"}
PRODUCE_VERSION = 9


def remembered_after(broker: Broker, ending: str) -> int:
    return BATCHES_RETAINED if broker.target == "odradek" and ending == "kill" else 1


def restart(broker: Broker, ending: str) -> None:
    getattr(broker, ending)()
    broker.start()


def restart_behind(proxy: FaultProxy, broker: Broker, topic: str, ending: str) -> None:
    """Start the broker again, and let clients in when it knows the topic.

    An Apache broker knows no topic in its first 0.1 s. A librdkafka client that asks then sends nothing to the topic
    for longer than a record may wait.
    """
    getattr(broker, ending)()
    proxy.is_shut_to_clients = True
    broker.start()
    await_leader(broker, topic)
    proxy.is_shut_to_clients = False


def await_leader(broker: Broker, topic: str) -> None:
    """Wait until Metadata names a partition of the topic."""
    with RawClient(broker.host, broker.port) as client:
        request = build(ApiKey.METADATA, topics=[{"name": topic}])
        eventually(lambda: client.call(request, 9).topics[0].partitions, accept=bool, timeout_s=20)  # type: ignore[attr-defined]


def is_known(broker: Broker, topic: str) -> bool:
    return topic in Admin(broker.bootstrap).topics()


# -- exact sequences ------------------------------------------------------------------------------------------


class RawProducer:
    """Sends exactly the batches it is told to; the records are numbered like the sequences."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._now_ms = int(time.time() * 1000)
        """Producers whose last record is a day old are forgotten at a start."""
        self._connect()
        new = build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=0)
        given: Any = eventually(lambda: self._client.call(new, 4), accept=lambda answer: answer.error_code == 0)
        self._producer_id: int = given.producer_id

    def _connect(self) -> None:
        self._client = RawClient(self._broker.host, self._broker.port)

    def _request(self, sent: Sent) -> Request:
        numbers = range(sent.sequence, sent.sequence + sent.count)
        records = [SimpleRecord(timestamp=self._now_ms, key=None, value=b"%d" % number) for number in numbers]
        producer = {"producer_id": self._producer_id, "producer_epoch": 0, "base_sequence": sent.sequence}
        return produce(self._topic, bytes(build_batch(records, **producer)))

    def in_flight(self, batches: list[Sent]) -> list[Answer]:
        """All under way at the same time."""
        ids = [self._client.send(self._request(sent), PRODUCE_VERSION) for sent in batches]
        return [self._answer(correlation_id) for correlation_id in ids]

    def _answer(self, correlation_id: int) -> Answer:
        answer: Any = self._client.receive(ApiKey.PRODUCE, PRODUCE_VERSION, correlation_id)
        ((partition,),) = (topic.partition_responses for topic in answer.responses)
        return Answer(ErrorCode(partition.error_code), partition.base_offset)

    def cut_after(self, sent: Sent, end: int) -> None:
        """The batch is appended, by which the log ends at `end`, and the connection ends instead of the answer."""
        self._client.send(self._request(sent), PRODUCE_VERSION)
        eventually(self.end, accept=lambda found: found == end)
        self.reconnect()

    def reconnect(self) -> None:
        self._client.close()
        self._connect()
        eventually(lambda: self.end() >= 0 and is_known(self._broker, self._topic))

    def close(self) -> None:
        self._client.close()

    def end(self) -> int:
        """-1 while the partition has no leader."""
        partitions = [{"partition_index": 0, "timestamp": -1}]
        request = build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": self._topic, "partitions": partitions}])
        with RawClient(self._broker.host, self._broker.port) as client:
            answer: Any = client.call(request, 5)
        found = answer.topics[0].partitions[0]
        return int(found.offset) if found.error_code == 0 else -1


def new_batches(model: ProducerModel, rng: random.Random) -> list[Sent]:
    """The next ones, at most as many as may be in flight."""
    found: list[Sent] = []
    sequence = model.next_sequence
    for _ in range(rng.randint(1, BATCHES_RETAINED)):
        found.append(Sent(sequence, rng.randint(1, 4)))
        sequence += found[-1].count
    return found


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_every_batch_is_answered_as_the_model_says(new_broker: NewBroker, ending: str) -> None:
    broker = new_broker(**SMALL_SEGMENTS)
    topic = Admin(broker.bootstrap).create_topic("exact")
    producer, model, rng = RawProducer(broker, topic), ProducerModel(), random.Random(ending)

    def answer(sent: Sent) -> Answer:
        return model.append(sent, model.next_sequence)  # alone in the log: its sequences are the offsets

    for number in range(60):
        batches = new_batches(model, rng)
        if number % 5 == 0:
            answer(batches[0])
            producer.cut_after(batches[0], model.next_sequence)
        if number % 20 == 10:
            restart(broker, ending)
            producer.reconnect()
            model.restart(remembered_after(broker, ending))
        repeated = rng.sample(list(model.written)[-7:], min(3, len(model.written)))
        for sent in (rng.sample(batches, len(batches)), repeated, batches, batches):
            assert producer.in_flight(sent) == [answer(each) for each in sent]
        assert producer.end() == model.next_sequence
    producer.close()
    read = ConfluentTransactions().read(broker.bootstrap, topic, "read_uncommitted")
    assert read == [(number, str(number)) for number in range(model.next_sequence)]


# -- clients behind a bad network -----------------------------------------------------------------------------

FAULTS = {
    ApiKey.PRODUCE: {
        Fault.DUPLICATE: 0.1,
        Fault.REFUSE: 0.08,
        Fault.REPLAY: 0.05,
        Fault.CUT_BEFORE: 0.03,
        Fault.CUT_AFTER: 0.07,
        Fault.DELAY: 0.01,
    },
    ApiKey.METADATA: {Fault.CUT_AFTER: 0.05},
    ApiKey.INIT_PRODUCER_ID: {Fault.CUT_AFTER: 0.2},
}
VALUES_A_ROUND = 100


@pytest.fixture(scope="module")
def java() -> Iterator[JavaTransactions]:
    found = JavaTransactions()
    yield found
    found.close()


@pytest.mark.parametrize("ending", ["stop", "kill", None])
@pytest.mark.parametrize("name", ["confluent", "java"])
def test_clients_write_once_and_in_order(
    make_broker: MakeBroker, java: JavaTransactions, tmp_path: Path, name: str, ending: str | None
) -> None:
    """A client whose broker knows fewer batches than it has in flight cannot tell what was written: see above."""
    faults = RandomFaults(7, FAULTS)
    with behind_proxy(lambda settings: make_broker(tmp_path, settings), faults, SMALL_SEGMENTS) as (broker, proxy):
        topic = Admin(proxy.bootstrap).create_topic("ordered")
        in_flight = BATCHES_RETAINED if ending is None else remembered_after(broker, ending)
        producer: IdempotentProducer = (
            JavaIdempotence(java, proxy.bootstrap, in_flight)
            if name == "java"
            else ConfluentIdempotence(proxy.bootstrap, in_flight)
        )
        values = [str(number) for number in range(3 * VALUES_A_ROUND + 1)]
        # What a producer that is unknown sends first is taken whatever its sequence, so it must not be overtaken.
        faults.calm = True
        producer.send(topic, values[:1])
        assert producer.offsets() == [0]
        faults.calm = False
        for start in range(1, len(values), VALUES_A_ROUND):
            producer.send(topic, values[start : start + VALUES_A_ROUND])
            if ending is not None:
                time.sleep(0.1)
                restart_behind(proxy, broker, topic, ending)
        offsets = producer.offsets()
        producer.close()
        faults.calm = True
        assert [found for offset, found in enumerate(offsets, 1) if found not in (offset, None)] == []
        assert len(offsets) == len(values) - 1
        assert ConfluentTransactions().read(proxy.bootstrap, topic, "read_uncommitted") == list(enumerate(values))
        assert {fault for api, fault in faults.count if api == "Produce"} >= {
            Fault.DUPLICATE,
            Fault.REFUSE,
            Fault.CUT_AFTER,
        }
