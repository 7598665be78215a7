"""What the recorder of requests says about requests that a fault changes."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from odradek.testing import Broker

pytestmark = pytest.mark.timeout(120)


def test_errors_retries_and_lost_answers() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 20})
        producer.produce("t", b"first")
        producer.flush()

        broker.clear_requests()
        with broker.faults.not_leader("t", times=1):
            producer.produce("t", b"refused once")
            producer.flush()
        refused, accepted = broker.requests("Produce")
        assert (refused.errors, accepted.errors) == (("NOT_LEADER_OR_FOLLOWER",), ())
        assert refused.records()[0][1].value == accepted.records()[0][1].value == b"refused once"

        broker.clear_requests()
        with broker.faults.drop_after_apply("Produce", times=1):
            producer.produce("t", b"written twice")
            producer.flush()
        lost, answered = broker.requests("Produce")
        assert (lost.has_answer, lost.is_answer_sent, answered.is_answer_sent) == (True, False, True)
        assert broker.topic("t").values().count(b"written twice") == 2, "a retry without idempotence"
        assert "Produce v10 t: ok (not sent)" in broker.failure_report()
