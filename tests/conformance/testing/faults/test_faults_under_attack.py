"""Faults on listeners with TLS and SASL, for pipelined requests, and with a thousand rules."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator

import pytest

from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.testing import Broker
from tests.support.certificates import Authority
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import batch, build
from tests.support.wire.sasl_client import log_in

RULES = 1_000
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Broker]:
    store = authority.issue("broker").write_pem(tmp_path_factory.mktemp("stores") / "broker.pem")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
    }
    with Broker(settings) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.faults.clear()
    return shared


def connect(broker: Broker, authority: Authority, listener: str) -> RawClient:
    context = None
    if "SSL" in listener:
        context = ssl.create_default_context(cadata=authority.pem)
    host, _, port = broker.addresses[listener].rpartition(":")
    client = RawClient(host, int(port), tls=context)
    if "SASL" in listener:
        log_in(client, "PLAIN", PlainSaslClient("alice", "secret"))
    return client


LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def fetch(partition_max_bytes: int = 1_000_000) -> Request:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": partition_max_bytes, "current_leader_epoch": -1}
    return build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=0,
        max_bytes=10_000_000,
        topics=[{"topic": "t", "partitions": [part]}],
    )


def produce(value: bytes) -> Request:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch(value)}]}]
    return build(ApiKey.PRODUCE, acks=1, timeout_ms=5_000, topic_data=data)


@pytest.mark.parametrize("listener", LISTENERS)
def test_every_listener_has_the_same_faults(broker: Broker, authority: Authority, listener: str) -> None:
    principal = "User:alice" if "SASL" in listener else "User:ANONYMOUS"
    asked = MetadataRequest(topics=[])
    with connect(broker, authority, listener) as client:
        with broker.faults.error("NOT_COORDINATOR", api="Heartbeat", principal=principal) as fault:
            answer = client.call(build(ApiKey.HEARTBEAT, group_id="g", member_id="m"), 4)
            assert answer.error_code == ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
        fault.assert_called(times=1)
        client.call(build(ApiKey.METADATA, topics=[{"name": "t"}], allow_auto_topic_creation=True), 9)
        broker.topic("t").wait_until_created()
        client.call(produce(bytes(200_000)), 9)
        with broker.faults.slow_bytes(2_000_000, api="Fetch"):
            assert client.call(fetch(), 11)
        with broker.faults.half_answer("Metadata", times=1):
            client.send(asked, 9)
            with pytest.raises(DecodeError):
                client.receive(ApiKey.METADATA, 9)
        with broker.faults.half_frame("Fetch", bytes=100_000):
            client.send(fetch(), 11)
            assert len(client._read(100_000)) == 100_000
            with pytest.raises((ConnectionClosedError, ssl.SSLError)):
                client._read(1)
    with connect(broker, authority, listener) as client, broker.faults.reset(api="Metadata"):
        client.send(asked, 9)
        assert client.awaits_close()


def test_pipelined_requests_are_answered_in_order_whatever_happens_to_them(
    broker: Broker, authority: Authority
) -> None:
    count = 60
    broker.faults.delay("5ms", api="Produce", every=3)
    broker.faults.duplicate("Produce", every=4)
    broker.faults.not_leader(topic="t", api="Produce", every=5)
    broker.faults.slow_bytes(20_000, api="Metadata", every=2)
    with connect(broker, authority, "PLAINTEXT") as client:
        client.call(build(ApiKey.METADATA, topics=[{"name": "t"}], allow_auto_topic_creation=True), 9)
        broker.topic("t").wait_until_created()
        sent = []
        for number in range(count):
            request = MetadataRequest(topics=[]) if number % 4 == 3 else produce(b"%d" % number)
            sent.append((request.API_KEY, client.send(request, 9)))
        for key, correlation_id in sent:
            client.receive(key, 9, correlation_id)


def test_a_thousand_rules_cost_little(broker: Broker, authority: Authority) -> None:
    asked = build(ApiKey.HEARTBEAT, group_id="g", member_id="m")

    def best_of_three(client: RawClient) -> float:
        times = []
        for _ in range(3):
            started = time.process_time()
            for _ in range(100):
                client.call(asked, 4)
            times.append((time.process_time() - started) / 100)
        return min(times)

    with connect(broker, authority, "PLAINTEXT") as client:
        without = best_of_three(client)
        for number in range(RULES):
            broker.faults.drop("Heartbeat", client_id=f"client-{number}")
        with_rules = best_of_three(client)
    assert with_rules - without < 0.02, "20 us for each rule that has to be looked at"
