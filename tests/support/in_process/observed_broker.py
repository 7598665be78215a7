"""A broker in the process that the assertions of the test kit look into, without a socket and without a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odradek.broker.apis.services import Services
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader
from odradek.testing.assertions.broker_assertions import BrokerAssertions
from odradek.testing.node.questions.questions import find
from odradek.testing.observations.observations import Observations
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, Waiting
from tests.support.wire.requests import batch, build


class ObservedBroker(BrokerAssertions):
    """`inner` is the broker. Questions run on its event loop, which turns only meanwhile."""

    def __init__(self, inner: InProcessBroker) -> None:
        self.inner = inner
        self.services: Services = inner.services
        self.observations = Observations(inner.services)
        self.asked: list[str] = []
        self._meanwhile: list[Callable[[], None]] = []

    def ask(self, name: str, /, **arguments: object) -> object:
        self.asked.append(name)
        return self.inner.run(self._ask(name, arguments))

    async def _ask(self, name: str, arguments: dict[str, Any]) -> object:
        question = asyncio.ensure_future(find(name)(self, **arguments))
        while self._meanwhile and not question.done():
            await asyncio.sleep(0)
            if self.observations.waits.waiting_count:
                self._meanwhile.pop(0)()
                for _ in range(5):
                    await asyncio.sleep(0)
        return await question

    def meanwhile(self, *actions: Callable[[], None]) -> None:
        """Do these things, one by one, when a question waits."""
        self._meanwhile += actions

    # Requests

    def dispatch(self, api: ApiKey, version: int, *, client_id: str = "me", **fields: object) -> Waiting:
        """Dispatch a request within a turn of the loop."""
        connection = FakeConnection()
        frame = self.inner.frame(build(api, **fields), version, client_id=client_id)
        self.inner.dispatch(connection, memoryview(frame), self.inner.clock.monotonic_ms())
        return Waiting(self.inner, connection, int.from_bytes(frame[4:8], "big"))

    def request(self, api: ApiKey, **fields: object) -> Request:
        return build(api, **fields)

    def request_header(self, api: ApiKey, version: int) -> RequestHeader:
        return RequestHeader(api, version, 1, "me")

    def dispatch_waiting_fetch(self) -> Waiting:
        """A Fetch at the end of topic t, which waits for records."""
        fields: dict[str, Any] = {
            "max_wait_ms": 60_000,
            "min_bytes": 1,
            "topics": [
                {
                    "topic": "t",
                    "partitions": [{"partition": 0, "fetch_offset": 1_000, "partition_max_bytes": 1_000}],
                }
            ],
        }
        fields["topics"][0]["partitions"][0]["fetch_offset"] = self.topic("t").end_offsets[0]
        request = build(ApiKey.FETCH, **fields)
        return self.inner.send(request, 11)

    def call(self, api: ApiKey, version: int, *, client_id: str = "me", **fields: object) -> Any:
        return self.inner.call(build(api, **fields), version, client_id=client_id)

    def produce(
        self,
        topic: str,
        *values: bytes | None,
        partition: int = 0,
        key: bytes | None = None,
        transactional_id: str | None = None,
        client_id: str = "me",
        **options: int,
    ) -> None:
        """Append one batch."""
        answer = self.call(
            ApiKey.PRODUCE,
            9,
            client_id=client_id,
            **produce_fields(
                topic, batch(*values, key=key, **options), partition=partition, transactional_id=transactional_id
            ),
        )
        (result,) = answer.responses[0].partition_responses
        assert result.error_code == 0, result


def produce_fields(
    topic: str, records: bytes, *, partition: int = 0, transactional_id: str | None = None
) -> Mapping[str, object]:
    """The fields of a Produce request."""
    return {
        "transactional_id": transactional_id,
        "acks": -1,
        "timeout_ms": 1_000,
        "topic_data": [{"name": topic, "partition_data": [{"index": partition, "records": records}]}],
    }


class TransactionalClient:
    """A producer with a transactional id, which sends raw requests."""

    def __init__(self, broker: ObservedBroker, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._broker = broker
        self.transactional_id = transactional_id
        broker.call(ApiKey.FIND_COORDINATOR, 3, key=transactional_id, key_type=1)  # creates the topic
        broker.topic("__transaction_state").wait_until_created()
        broker.inner.settle(lambda: not broker.services.transaction_coordinator.states.is_anything_loading)
        answer = broker.call(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        assert answer.error_code == 0, answer
        self.producer: dict[str, int] = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
        self._sequences: dict[tuple[str, int], int] = {}

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        answer = self._broker.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer["producer_id"],
            v3_and_below_producer_epoch=self.producer["producer_epoch"],
            v3_and_below_topics=[{"name": topic, "partitions": [partition]}],
        )
        assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0, answer
        sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = sequence + len(values)
        self._broker.produce(
            topic,
            *values,
            partition=partition,
            transactional_id=self.transactional_id,
            base_sequence=sequence,
            is_transactional=True,
            **self.producer,
        )

    def end(self, *, commit: bool) -> None:
        answer = self._broker.call(
            ApiKey.END_TXN, 3, transactional_id=self.transactional_id, committed=commit, **self.producer
        )
        assert answer.error_code == 0, answer


@contextmanager
def observed_broker(path: Path, topics: Sequence[str] = ("t",), **settings: str) -> Iterator[ObservedBroker]:
    """A broker with these topics of one partition, and without a delay of the first rebalance."""
    inner = InProcessBroker(
        path,
        {
            "group.initial.rebalance.delay.ms": "0",
            "transaction.state.log.num.partitions": "1",
            **{name.replace("_", "."): value for name, value in settings.items()},
        },
    )
    broker = ObservedBroker(inner)
    try:
        for topic in topics:
            inner.create_topic(topic)
        broker.clear_requests()
        yield broker
    finally:
        broker.observations.close()
        inner.stop()
