from __future__ import annotations

import json

import pytest

from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.znodes import broker_node
from odradek.controller.znodes.znode_json import BadZnode

PLAINTEXT = EndPoint("h", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
SSL = EndPoint("h", 9093, "SECURE", SecurityProtocol.SSL)


def test_registration() -> None:
    info = BrokerInfo(broker=Broker(3, (SSL, PLAINTEXT), "r1"))
    data = broker_node.encode_broker(info, 1700000000000)
    assert json.loads(data) == {
        "version": 5,
        "host": "h",
        "port": 9092,
        "jmx_port": -1,
        "timestamp": "1700000000000",
        "endpoints": ["SECURE://h:9093", "PLAINTEXT://h:9092"],
        "listener_security_protocol_map": {"SECURE": "SSL", "PLAINTEXT": "PLAINTEXT"},
        "rack": "r1",
        "features": {},
    }
    assert broker_node.decode_broker(3, data) == info


def test_registrations_that_older_brokers_understand() -> None:
    for version, absent in (
        (5, set()),
        (4, {"features"}),
        (2, {"features", "listener_security_protocol_map", "rack"}),
    ):
        broker = Broker(3, (PLAINTEXT,), None if version == 2 else "r1")
        info = BrokerInfo(broker=Broker(3, (PLAINTEXT,), "r1"), version=version)
        data = broker_node.encode_broker(info, 1)
        keys = {"version", "host", "port", "jmx_port", "timestamp", "endpoints", "listener_security_protocol_map"}
        assert json.loads(data).keys() == (keys | {"rack", "features"}) - absent
        assert broker_node.decode_broker(3, data) == BrokerInfo(broker=broker, version=version)


def test_registration_without_rack_and_plaintext() -> None:
    info = BrokerInfo(broker=Broker(3, (SSL,)))
    data = broker_node.encode_broker(info, 1)
    node = json.loads(data)
    assert "rack" not in node
    assert (node["host"], node["port"]) == (None, -1)
    assert broker_node.decode_broker(3, data) == info


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fe80::1%eth0", "host-1.example.com", ""])
def test_endpoint_hosts(host: str) -> None:
    point = EndPoint(host, 1, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
    info = BrokerInfo(broker=Broker(1, (point,)))
    assert broker_node.decode_broker(1, broker_node.encode_broker(info, 1)) == info


def test_registrations_of_old_versions() -> None:
    v1 = b'{"version":1,"host":"old","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    assert broker_node.decode_broker(1, v1).broker.end_points == (
        EndPoint("old", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT),
    )
    v2 = b'{"version":2,"host":"a","port":1,"jmx_port":-1,"timestamp":"1","endpoints":["SSL://a:2"],"new":[]}'
    assert broker_node.decode_broker(1, v2).broker.end_points == (EndPoint("a", 2, "SSL", SecurityProtocol.SSL),)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"junk",
        b"[]",
        b'{"version":0}',
        b'{"version":5,"endpoints":["nonsense"]}',
        b'{"version":5,"endpoints":["OTHER://h:1"],"listener_security_protocol_map":{}}',
        b'{"version":5,"endpoints":"PLAINTEXT://h:1"}',
    ],
)
def test_bad_registrations(data: bytes | None) -> None:
    with pytest.raises(BadZnode):
        broker_node.decode_broker(1, data)
