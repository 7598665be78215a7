"""Requests of clients with quotas, in a whole broker: answers, throttle times, muted connections."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import pytest

from odradek.broker.apis import HANDLERS
from odradek.broker.dispatch import Dispatcher
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.quotas.quota_entity import client_quota_entity
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_response_parts
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.timer.clock import ManualClock
from tests.support.in_process.in_process_broker import FakeConnection, InProcessBroker, in_process_broker
from tests.support.in_process.security.scripted_authorizer import ScriptedAuthorizer
from tests.support.wire.requests import batch, build

VALUE = b"v" * 1_000
RATE = 100
"""Bytes a second."""


class WorkingClock(ManualClock):
    """Each look at the nanoseconds finds that some work was done."""

    def __init__(self) -> None:
        super().__init__(1_700_000_000_000)
        self.nanoseconds_of_work = 0

    def monotonic_ns(self) -> int:
        self.nanoseconds_of_work += NANOSECONDS_A_LOOK
        return super().monotonic_ns() + self.nanoseconds_of_work


NANOSECONDS_A_LOOK = 1_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path_factory.mktemp("quotas"), clock=WorkingClock()) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


def quota(broker: InProcessBroker, client_id: str, key: str, value: float) -> None:
    entity = [{"entity_type": "client-id", "entity_name": client_id}]
    ops = [{"key": key, "value": value, "remove": False}]
    answer = broker.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[{"entity": entity, "ops": ops}]), 1)
    assert isinstance(answer, AlterClientQuotasResponse)
    assert [entry.error_code for entry in answer.entries] == [ErrorCode.NONE]
    quotas = broker.services.quotas
    manager = {
        "consumer_byte_rate": quotas.fetch,
        "producer_byte_rate": quotas.produce,
        "request_percentage": quotas.request,
        "controller_mutation_rate": quotas.controller_mutation,
    }[key]
    assert broker.settle(lambda: manager.max_value_in_quota_window("User:ANONYMOUS", client_id) == value * 10)


def produce_request(acks: int = -1, topic: str = "t") -> Request:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(VALUE)}]}]
    return build(ApiKey.PRODUCE, acks=acks, timeout_ms=1_000, topic_data=data)


def produce(broker: InProcessBroker, connection: FakeConnection, client_id: str) -> ProduceResponse:
    answer = broker.call(produce_request(), 9, connection=connection, client_id=client_id)
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return answer


def fetch(
    broker: InProcessBroker,
    connection: FakeConnection,
    client_id: str,
    *,
    session_id: int = 0,
    epoch: int = -1,
    version: int = 17,
    max_bytes: int = 1 << 20,
    **fields: object,
) -> FetchResponse:
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    name = {"topic_id": broker.topic_id("t")} if version >= 13 else {"topic": "t"}
    answer = broker.call(
        build(
            ApiKey.FETCH,
            topics=[] if epoch > 0 else [{**name, "partitions": [asked]}],
            session_id=session_id,
            session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            **fields,
        ),
        version,
        connection=connection,
        client_id=client_id,
    )
    assert isinstance(answer, FetchResponse)
    return answer


def test_a_produce_is_answered_at_once_and_its_connection_muted(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    quota(broker, "p", "producer_byte_rate", RATE)
    size = len(broker.frame(produce_request(), 9, client_id="p"))
    answer = produce(broker, connection, "p")
    # The rate is size / 10 s; it takes size / RATE - 10 s until it is the quota.
    assert answer.throttle_time_ms == round((size / RATE - 10) * 1_000) > 0
    assert connection.throttles.active
    broker.advance(answer.throttle_time_ms - 1)
    assert connection.throttles.active
    broker.advance(1)
    assert not connection.throttles.active


def test_a_produce_within_its_quota_is_not_throttled(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "p-enough", "producer_byte_rate", 10_000)
    assert produce(broker, connection, "p-enough").throttle_time_ms == 0
    assert not connection.throttles.active


def test_a_produce_without_an_answer_is_throttled_too(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "p0", "producer_byte_rate", RATE)
    waiting = broker.send(produce_request(acks=0), 9, connection=connection, client_id="p0")
    assert waiting.is_answered
    assert connection.throttles.active


def test_a_produce_for_an_unknown_topic_counts(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "p-unknown", "producer_byte_rate", RATE)
    request = produce_request(topic="no-such-topic")
    answer = broker.call(request, 9, connection=connection, client_id="p-unknown")
    assert isinstance(answer, ProduceResponse)
    assert answer.throttle_time_ms > 0


def test_with_a_quota_the_next_produce_waits_for_the_answer(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    quota(broker, "p-pipeline", "producer_byte_rate", 10_000)
    produce(broker, connection, "p-pipeline")
    assert not connection.begun[-1].may_pipeline


def test_a_throttled_fetch_is_empty_and_its_bytes_do_not_count(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    produce(broker, connection, "feeds-the-topic")
    quota(broker, "f", "consumer_byte_rate", RATE)
    whole = fetch(broker, connection, "feeds-the-topic")
    records = whole.responses[0].partitions[0].records
    assert isinstance(records, memoryview | bytes)
    answer = fetch(broker, connection, "f")
    assert answer.throttle_time_ms > 0
    assert answer.responses == []
    assert answer.session_id == 0
    assert connection.throttles.active
    again = fetch(broker, FakeConnection(), "f")
    assert again.throttle_time_ms == answer.throttle_time_ms, "the empty answer counted nothing"


def test_the_time_of_a_fetch_follows_from_the_size_of_its_answer(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    produce(broker, connection, "feeds-the-topic")
    quota(broker, "f-size", "consumer_byte_rate", 1)
    answer = fetch(broker, connection, "f-size", max_bytes=1)
    one_batch = len(batch(VALUE))
    # Of FetchResponse v17: length 4, throttle 4, error 2, session 4, topics 1, id 16, partitions 1, then the partition
    # with index 4, error 2, high watermark 8, stable offset 8, log start 8, aborted 1, preferred 4, records 2, tags 1;
    # tags of the topic 1 and of the answer 1.
    size = 4 + 4 + 2 + 4 + 1 + 16 + 1 + (4 + 2 + 8 + 8 + 8 + 1 + 4 + 2 + one_batch + 1) + 1 + 1
    assert answer.throttle_time_ms == (size - 10) * 1_000


def test_a_fetch_is_cut_to_what_the_quota_allows_in_its_windows(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    for _ in range(8):
        produce(broker, connection, "feeds-the-topic")
    quota(broker, "f-cut", "consumer_byte_rate", 300)
    first = fetch(broker, connection, "f-cut")
    assert 0 < first.throttle_time_ms < 1_000, "the few bytes around the records are too many"
    broker.advance(first.throttle_time_ms)
    answer = fetch(broker, connection, "f-cut")
    assert answer.throttle_time_ms == 0
    records = answer.responses[0].partitions[0].records
    assert isinstance(records, memoryview | bytes)
    assert len(batch(VALUE)) < len(records) <= 3_000


def test_a_limit_without_bound_cuts_nothing(broker: InProcessBroker, connection: FakeConnection) -> None:
    """As a callback may return it."""
    produce(broker, connection, "feeds-the-topic")
    broker.services.quotas.fetch.update_quota(client_quota_entity(None, "f-infinite"), math.inf)
    answer = fetch(broker, connection, "f-infinite")
    assert answer.throttle_time_ms == 0
    assert answer.responses[0].partitions[0].records


def test_a_throttled_fetch_leaves_its_session_as_it_was(broker: InProcessBroker, connection: FakeConnection) -> None:
    produce(broker, connection, "feeds-the-topic")
    begun = fetch(broker, connection, "f-session", epoch=0)
    assert begun.session_id != 0
    quota(broker, "f-session", "consumer_byte_rate", 1)
    produce(broker, connection, "feeds-the-topic")
    throttled = fetch(broker, connection, "f-session", session_id=begun.session_id, epoch=1)
    assert throttled.throttle_time_ms > 0
    assert throttled.session_id == begun.session_id
    assert throttled.responses == []
    quota(broker, "f-session", "consumer_byte_rate", 1_000_000)
    after = fetch(broker, connection, "f-session", session_id=begun.session_id, epoch=2)
    assert after.throttle_time_ms == 0
    assert after.responses[0].partitions[0].records


@pytest.mark.parametrize("version", [2, 3])
def test_an_old_consumer_is_throttled_before_its_records_are_converted(
    broker: InProcessBroker, connection: FakeConnection, version: int
) -> None:
    produce(broker, connection, "feeds-the-topic")
    quota(broker, f"f-v{version}", "consumer_byte_rate", 1)
    answer = fetch(broker, connection, f"f-v{version}", version=version)
    assert answer.throttle_time_ms > 0
    assert answer.responses == []


def test_a_follower_is_exempt(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "f-follower", "consumer_byte_rate", 1)
    answer = fetch(broker, connection, "f-follower", replica_state={"replica_id": 5, "replica_epoch": -1})
    assert answer.throttle_time_ms == 0
    assert not connection.throttles.active


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.HEARTBEAT, ApiKey.DESCRIBE_CONFIGS, ApiKey.API_VERSIONS])
def test_the_time_of_any_request_is_limited(broker: InProcessBroker, connection: FakeConnection, key: ApiKey) -> None:
    client_id = f"r-{key.name}"
    quota(broker, client_id, "request_percentage", 1e-9)
    answer = broker.call(
        build(key), 1 if key == ApiKey.DESCRIBE_CONFIGS else 3, connection=connection, client_id=client_id
    )
    assert answer.throttle_time_ms == 1_000  # type: ignore[attr-defined]
    assert connection.throttles.active
    assert broker.services.quotas.request.queue_size == 1
    broker.advance(1_000)
    assert not connection.throttles.active
    assert broker.services.quotas.request.queue_size == 0


def test_an_error_answer_is_throttled_too(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "r-error", "request_percentage", 1e-9)
    asked = [{"entity_type": "planet", "match_type": 0, "match": "x"}]
    request = build(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=asked, strict=False)
    answer = broker.call(request, 1, connection=connection, client_id="r-error")
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
    assert answer.throttle_time_ms == 1_000  # type: ignore[attr-defined]


def test_an_answer_without_a_throttle_time_mutes_all_the_same(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    quota(broker, "r-sasl", "request_percentage", 1e-9)
    broker.call(build(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN"), 1, connection=connection, client_id="r-sasl")
    assert connection.throttles.active


def test_requests_of_brokers_are_exempt(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "r-broker", "request_percentage", 1e-9)
    request = build(ApiKey.ALTER_PARTITION, broker_id=5, broker_epoch=-1, topics=[])
    broker.call(request, 3, connection=connection, client_id="r-broker")
    replica = {"replica_id": 5, "replica_epoch": -1}
    assert fetch(broker, connection, "r-broker", replica_state=replica).throttle_time_ms == 0
    assert not connection.throttles.active
    manager = broker.services.quotas.request
    assert manager.exempt_rate.measure(broker.clock.monotonic_ms()) > 0


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.ALTER_PARTITION, 3), (ApiKey.CONTROLLED_SHUTDOWN, 3), (ApiKey.WRITE_TXN_MARKERS, 1)]
)
def test_requests_of_brokers_that_a_client_may_not_send_are_limited(
    broker: InProcessBroker, connection: FakeConnection, key: ApiKey, version: int
) -> None:
    client_id = f"r-refused-{key.name}"
    quota(broker, client_id, "request_percentage", 1e-9)
    broker.services.authorizer = ScriptedAuthorizer()
    try:
        broker.call(build(key), version, connection=connection, client_id=client_id)
    finally:
        broker.services.authorizer = None
    assert connection.throttles.active


def test_a_request_to_itself_takes_no_time_while_it_waits(broker: InProcessBroker) -> None:
    """Requests of a broker to itself come without a frame, and some wait for ZooKeeper."""
    quota(broker, "own", "request_percentage", 50)
    dispatcher = cast("Dispatcher", broker.services.spawn.__self__)  # type: ignore[attr-defined]
    connection = FakeConnection()
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": "waits", "partitions": [asked]}]
    broker.create_topic("waits")
    ctx = RequestContext(RequestHeader(ApiKey.FETCH, 12, 1, "own"), connection, 0, 0)
    fetch = build(ApiKey.FETCH, topics=topics, session_epoch=-1, max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20)
    dispatcher.serve(ctx, fetch)
    assert ctx.times is not None
    before_ns = ctx.times.loop_ns
    broker.clock.advance(1_000)  # type: ignore[union-attr]
    assert ctx.times.loop_ns == before_ns


def test_a_produce_without_an_answer_is_exempt_from_quotas_of_time(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    quota(broker, "r-p0", "request_percentage", 1e-9)
    waiting = broker.send(produce_request(acks=0), 9, connection=connection, client_id="r-p0")
    assert waiting.is_answered
    assert not connection.throttles.active


def test_the_longer_of_two_throttle_times_counts(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "both", "request_percentage", 1e-9)
    quota(broker, "both", "producer_byte_rate", RATE)
    in_queue = broker.services.quotas.produce.queue_size
    assert produce(broker, connection, "both").throttle_time_ms > 1_000
    assert len(connection.throttles.active) == 1
    assert broker.services.quotas.produce.queue_size == in_queue + 1


def test_a_fetch_that_is_throttled_for_its_time_is_empty_and_its_bytes_do_not_count(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    produce(broker, connection, "feeds-the-topic")
    quota(broker, "r-fetch", "request_percentage", 1e-9)
    quota(broker, "r-fetch", "consumer_byte_rate", 1_000_000)
    answer = fetch(broker, connection, "r-fetch")
    assert answer.throttle_time_ms == 1_000
    assert answer.responses == []
    (sensors,) = [one for one in broker.services.quotas.fetch.sensors if one.tags == ("", "r-fetch")]
    assert sensors.rate.measure(broker.clock.monotonic_ms()) == 0


def create(broker: InProcessBroker, connection: FakeConnection, name: str, *, client_id: str, version: int) -> object:
    topics = [{"name": name, "num_partitions": 3, "replication_factor": 1}]
    request = build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=5_000)
    return broker.call(request, version, connection=connection, client_id=client_id)


def grown(name: str) -> Request:
    topics = [{"name": name, "count": 4, "assignments": None}]
    return build(ApiKey.CREATE_PARTITIONS, topics=topics, timeout_ms=5_000)


def test_a_strict_quota_of_changes_refuses_topics(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "m-strict", "controller_mutation_rate", 0.2)
    first = create(broker, connection, "strict-1", client_id="m-strict", version=7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (ErrorCode.NONE, 0)  # type: ignore[attr-defined]
    second = create(broker, connection, "strict-2", client_id="m-strict", version=6)
    (refused,) = second.topics  # type: ignore[attr-defined]
    assert (refused.error_code, refused.error_message) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
    # 2.2 tokens less 3 are -0.8; at 0.2 a second that takes 4 s.
    assert second.throttle_time_ms == pytest.approx(4_000, abs=1)  # type: ignore[attr-defined]
    assert connection.throttles.active
    assert broker.services.quotas.controller_mutation.queue_size == 1
    delete = build(ApiKey.DELETE_TOPICS, topics=[{"name": "strict-1"}], timeout_ms=5_000)
    answer = broker.call(delete, 6, connection=connection, client_id="m-strict")
    assert answer.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED  # type: ignore[attr-defined]
    grow = build(
        ApiKey.CREATE_PARTITIONS, topics=[{"name": "strict-1", "count": 4, "assignments": None}], timeout_ms=5_000
    )
    answer = broker.call(grow, 3, connection=connection, client_id="m-strict")
    assert answer.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED  # type: ignore[attr-defined]


def test_a_permissive_quota_of_changes_mutes(broker: InProcessBroker, connection: FakeConnection) -> None:
    quota(broker, "m-permissive", "controller_mutation_rate", 0.2)
    answer = create(broker, connection, "permissive-1", client_id="m-permissive", version=5)
    assert answer.topics[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]
    assert answer.throttle_time_ms == pytest.approx(4_000, abs=1)  # type: ignore[attr-defined]
    grow = build(
        ApiKey.CREATE_PARTITIONS, topics=[{"name": "permissive-1", "count": 4, "assignments": None}], timeout_ms=5_000
    )
    answer = broker.call(grow, 2, connection=connection, client_id="m-permissive")
    assert answer.results[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]
    assert answer.throttle_time_ms == pytest.approx(9_000, abs=1)  # type: ignore[attr-defined]
    delete = build(ApiKey.DELETE_TOPICS, topic_names=["permissive-1"], timeout_ms=5_000)
    answer = broker.call(delete, 4, connection=connection, client_id="m-permissive")
    assert answer.responses[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]
    assert answer.throttle_time_ms == pytest.approx(29_000, abs=1)  # type: ignore[attr-defined]


def test_topics_that_are_created_automatically_take_tokens_of_the_client(
    broker: InProcessBroker, connection: FakeConnection
) -> None:
    quota(broker, "m-auto", "controller_mutation_rate", 0.01)
    request = build(ApiKey.METADATA, topics=[{"name": "automatic"}], allow_auto_topic_creation=True)
    answer = broker.call(request, 9, connection=connection, client_id="m-auto")
    assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE  # type: ignore[attr-defined]
    assert not connection.throttles.active
    refused = create(broker, connection, "after-automatic", client_id="m-auto", version=7)
    assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", sorted(HANDLERS), ids=lambda key: ApiKey(key).name)
def test_a_throttle_time_can_be_sent_in_every_version(key: ApiKey) -> None:
    """A version without the field leaves it out."""
    spec = API[key]
    response = spec.response_type()()
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = 7
        for version in range(spec.min_version, spec.max_version + 1):
            encode_response_parts(key, version, 1, response)
