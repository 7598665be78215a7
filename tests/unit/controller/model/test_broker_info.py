from __future__ import annotations

import pytest

from odradek.controller.model.broker_info import Broker, EndPoint, SecurityProtocol


@pytest.mark.parametrize(
    ("host", "text"), [("h", "A://h:1"), ("::1", "A://[::1]:1"), ("", "A://:1"), ("10.0.0.1", "A://10.0.0.1:1")]
)
def test_connection_strings(host: str, text: str) -> None:
    assert EndPoint(host, 1, "A", SecurityProtocol.SSL).connection_string == text


def test_endpoints_by_listener() -> None:
    inside = EndPoint("h", 1, "INSIDE", SecurityProtocol.PLAINTEXT)
    broker = Broker(1, (inside, EndPoint("h", 2, "OUTSIDE", SecurityProtocol.SSL)))
    assert broker.end_point("INSIDE") is inside
    assert broker.end_point("inside") is None


def test_protocol_ids() -> None:
    assert [(protocol.name, int(protocol)) for protocol in SecurityProtocol] == [
        ("PLAINTEXT", 0),
        ("SSL", 1),
        ("SASL_PLAINTEXT", 2),
        ("SASL_SSL", 3),
    ]
