"""The assertions of the test kit with many records and many requests, over the pipe of a broker in a process."""

from __future__ import annotations

import struct
import threading

import pytest
from confluent_kafka import Producer

from odradek.testing import Broker
from odradek.testing.observations.request_recorder import REQUESTS_MAX
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.timeout(120)

RECORDS = 100_000
REQUESTS = REQUESTS_MAX + 2_000


def test_many_records() -> None:
    with Broker(num_partitions=3, own_process=True) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20})
        for number in range(RECORDS):
            producer.produce("t", b"%d" % number)
            if not number % 1_000:
                producer.poll(0)
        assert producer.flush(60) == 0
        values = {record.value for record in broker.topic("t").wait_for(RECORDS)}
        assert values == {b"%d" % number for number in range(RECORDS)}
        assert sum(broker.topic("t").end_offsets.values()) == RECORDS


def test_many_requests() -> None:
    frame = struct.pack(">hhih", 18, 0, 7, 2) + b"me"
    with Broker(own_process=True) as broker:
        host, port = broker.bootstrap_servers.split(":")
        with RawClient(host, int(port)) as client:
            sending = threading.Thread(target=lambda: [client.send_frame(frame) for _ in range(REQUESTS)], daemon=True)
            sending.start()
            for _ in range(REQUESTS):
                client.receive_frame()
            sending.join()
        requests = broker.requests("ApiVersions")
        assert len(requests) == REQUESTS_MAX
        assert [request.number for request in requests] == list(range(REQUESTS - REQUESTS_MAX + 1, REQUESTS + 1))
        report = broker.failure_report().splitlines()
        assert report[1] == f"  (the last 20 of {REQUESTS})"
        assert len(report) < 40
