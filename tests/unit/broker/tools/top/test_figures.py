from __future__ import annotations

import json

from odradek.broker.tools.top.figures import figures
from tests.unit.broker.tools.top.samples import AFTER, BEFORE


def test_brokers() -> None:
    first, second = figures(BEFORE, AFTER).brokers
    assert first == {
        "broker": 1,
        "address": "host:9001",
        "rack": None,
        "controller": False,
        "leaders": 1,
        "replicas": 2,
        "out_of_sync": 1,
        "records_per_second": 100.0,
        "bytes_per_second": 2000.0,
        "size_bytes": 5007,
        "free_bytes": 1000,
    }
    assert (second["controller"], second["rack"], second["free_bytes"]) == (True, "r", None)
    assert second["bytes_per_second"] == 0, "what was deleted does not count"


def test_topics() -> None:
    internal, topic = figures(BEFORE, AFTER).topics
    assert topic == {
        "topic": "t",
        "internal": False,
        "partitions": 2,
        "replicas": 2,
        "under_replicated": 1,
        "records_per_second": 100.0,
        "bytes_per_second": 2000.0,
        "size_bytes": 5400,
        "end_offsets": 350,
    }
    assert internal["internal"]


def test_groups() -> None:
    empty, group = figures(BEFORE, AFTER).groups
    assert group == {
        "group": "g",
        "state": "Stable",
        "members": 3,
        "coordinator": 2,
        "topics": 1,
        "lag": 210,
        "records_per_second": 20.0,
    }
    assert (empty["lag"], empty["records_per_second"]) == (0, 0)


def test_summary_and_json() -> None:
    found = figures(BEFORE, AFTER)
    assert found.summary == {
        "time_ms": 5,
        "cluster": "cluster",
        "controller": 2,
        "seconds": 2.0,
        "partitions": 3,
        "without_leader": 1,
        "under_replicated": 2,
        "records_per_second": 100.0,
        "bytes_per_second": 2000.0,
    }
    assert json.loads(json.dumps(found.as_json()))["groups"][1]["lag"] == 210


def test_one_sample_has_no_rates() -> None:
    found = figures(AFTER, AFTER)
    assert found.summary["records_per_second"] == 0
    assert found.groups[1]["lag"] == 210
