from __future__ import annotations

import pytest

from odradek.broker.config.endpoint import EndPoint, parse_csv, parse_csv_map, parse_end_points
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.storage.config.config_def import ConfigError

PROTOCOLS = {"PLAINTEXT": SecurityProtocol.PLAINTEXT, "SSL": SecurityProtocol.SSL}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://:9092", None, 9092),
        ("PLAINTEXT://host.example:0", "host.example", 0),
        ("plaintext://10.0.0.1:1", "10.0.0.1", 1),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::b1da%eth0]:9092", "fe80::b1da%eth0", 9092),
        ("PLAINTEXT://::1:9092", "::1", 9092),
    ],
)
def test_one_listener(text: str, host: str | None, port: int) -> None:
    assert parse_end_points(text, PROTOCOLS) == (EndPoint(host, port, "PLAINTEXT", SecurityProtocol.PLAINTEXT),)


def test_several_listeners_keep_their_order() -> None:
    names = [end_point.listener_name for end_point in parse_end_points(" SSL://:2 , PLAINTEXT://:1", PROTOCOLS)]
    assert names == ["SSL", "PLAINTEXT"]


def test_advertised_ports_may_repeat_and_listening_ones_may_not() -> None:
    text = "PLAINTEXT://a:1,SSL://b:1"
    assert len(parse_end_points(text, PROTOCOLS, distinct_ports=False)) == 2
    with pytest.raises(ConfigError, match="different port"):
        parse_end_points(text, PROTOCOLS)
    assert len(parse_end_points("PLAINTEXT://a:0,SSL://b:0", PROTOCOLS)) == 2


@pytest.mark.parametrize("text", ["PLAINTEXT", "PLAINTEXT://", "PLAINTEXT://h", "PLAINTEXT://h:", "PLAINTEXT://h/x:1"])
def test_invalid_listeners_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Unable to parse"):
        parse_end_points(text, PROTOCOLS)


@pytest.mark.parametrize("port", ["2147483648", 5000 * "1"])
def test_a_port_that_is_no_number_of_java_is_refused(port: str) -> None:
    with pytest.raises(ConfigError, match="For input string"):
        parse_end_points(f"PLAINTEXT://h:{port}", PROTOCOLS)


def test_shown_as_configured() -> None:
    for text in ("PLAINTEXT://:9092", "SSL://[::1]:9093", "SSL://host:1"):
        assert str(parse_end_points(text, PROTOCOLS)[0]) == text


def test_lists_and_maps() -> None:
    assert parse_csv(None) == parse_csv("") == []
    assert parse_csv("a , b,,c") == ["a", "b", "c"]
    assert parse_csv_map("k", "a:1,b:2, ,") == {"a": "1", "b": "2"}
    assert parse_csv_map("k", "a:1, b : 2,::1:3") == {"a": "1", "b": "2", "::1": "3"}
    with pytest.raises(ConfigError, match="'k'"):
        parse_csv_map("k", "a")
