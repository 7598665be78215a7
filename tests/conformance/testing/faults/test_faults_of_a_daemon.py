"""Faults of `odradek serve`: a YAML file, and HTTP for other languages, with the JSON of any client."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

FILE = """
faults:
  - action: coordinator_not_available
    client_id: raw
    times: 1
"""


def http(method: str, url: str, body: object = None, **headers: str) -> object:
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **headers}
    with urllib.request.urlopen(urllib.request.Request(url, data, given, method=method), timeout=10) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def find_coordinator(broker: OdradekBroker) -> int:
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(build(ApiKey.FIND_COORDINATOR, key="g"), 1)
    code: int = answer.error_code  # type: ignore[attr-defined]
    return code


def test_a_file_and_rules_over_http(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(FILE)
    broker = OdradekBroker(tmp_path / "broker")
    broker.options = ["--faults", str(file), "--faults-listener", "127.0.0.1:0"]
    broker.start()
    try:
        assert "FAULTS ARE ON" in broker.log_text()
        found = re.search(r"http://127\.0\.0\.1:\d+/faults", broker.log_text())
        assert found is not None
        url = found[0]
        assert find_coordinator(broker) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        (rule,) = http("GET", url)["faults"]  # type: ignore[index, call-overload]
        assert (rule["fired"], rule["rule"]["times"]) == (1, 1)

        added = http("POST", url, {"action": "error", "code": "GROUP_AUTHORIZATION_FAILED", "api": "FindCoordinator"})
        assert added == {"ids": [2]}
        assert find_coordinator(broker) == ErrorCode.GROUP_AUTHORIZATION_FAILED
        record = http("GET", url.replace("/faults", "/record"))
        assert http("DELETE", url) is None
        assert http("POST", url.replace("/faults", "/replay"), record) is None
        assert find_coordinator(broker) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert find_coordinator(broker) == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert http("GET", url.replace("/faults", "/replay")) == {"difference": None, "unplayed": []}
        with pytest.raises(urllib.error.HTTPError, match="403"):
            http("GET", url, Host="evil.example")
        http("DELETE", url)
        http("POST", url, {"action": "delay", "ms": "1h", "api": "FindCoordinator"})
        with RawClient(broker.host, broker.port) as client:
            client.send(build(ApiKey.FIND_COORDINATOR, key="g"), 1)
            broker.stop_cleanly()  # with a delayed answer pending
    finally:
        broker.close()


def test_a_file_that_cannot_be_read_is_a_line_and_status_1(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("faults:\n  - action: error\n    code: TYPO\n")
    broker = OdradekBroker(tmp_path / "broker")
    broker.options = ["--faults", str(file)]
    broker.launch()
    assert broker.wait_for_end() == 1
    assert f"odradek: {file}:3: code: 'TYPO' is no error code of Kafka" in broker.log_text()
