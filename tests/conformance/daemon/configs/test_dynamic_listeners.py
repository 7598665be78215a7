"""Listeners that AlterConfigs adds and removes, on Odradek and on Apache Kafka."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import cast

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.metadata import MetadataResponse
from tests.support.broker import Broker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

BROKER = 4
SET, DELETE = 0, 1
INVALID_REQUEST = 42
MAP = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,MORE:PLAINTEXT"


def alter(broker: Broker, configs: Mapping[str, str | None], *, validate_only: bool = False) -> tuple[int, str | None]:
    """Set configs of the broker, or remove those that are None."""
    changes = [
        {"name": name, "value": value, "config_operation": DELETE if value is None else SET}
        for name, value in configs.items()
    ]
    resource = {"resource_type": BROKER, "resource_name": "0", "configs": changes}
    request = build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=validate_only)
    with RawClient(broker.host, broker.port) as client:
        answer = cast("IncrementalAlterConfigsResponse", client.call(request, 1)).responses[0]
    return answer.error_code, answer.error_message


def port_in_metadata(host: str, port: int) -> int | None:
    """The port of the broker that a client of this address is told; None if nobody answers there."""
    try:
        with RawClient(host, port) as client:
            answer = cast("MetadataResponse", client.call(build(ApiKey.METADATA, topics=[]), 9))
    except (ConnectionRefusedError, ConnectionClosedError):
        return None
    return answer.brokers[0].port if answer.brokers else None


def is_refused(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.oracle
def test_listeners_come_and_go(new_broker: Callable[..., Broker]) -> None:
    broker = new_broker()
    extra, more = free_port(), free_port()
    own = f"PLAINTEXT://{broker.host}:{broker.port}"
    with_extra = f"{own},EXTRA://{broker.host}:{extra}"
    assert alter(broker, {"listeners": with_extra, "listener.security.protocol.map": MAP}) == (0, None)
    assert eventually(lambda: port_in_metadata(broker.host, extra), accept=lambda port: port == extra)

    with RawClient(broker.host, extra) as client, RawClient(broker.host, broker.port) as other:
        client.call(build(ApiKey.API_VERSIONS), 0)
        assert alter(broker, {"listeners": f"{own},MORE://{broker.host}:{more}"}) == (0, None)
        assert eventually(lambda: port_in_metadata(broker.host, more), accept=lambda port: port == more)
        assert client.awaits_close()
        other.call(build(ApiKey.API_VERSIONS), 0)
    assert eventually(lambda: is_refused(broker.host, extra), accept=bool)
    assert port_in_metadata(broker.host, broker.port) == broker.port

    broker.stop()
    broker.start()
    assert port_in_metadata(broker.host, more) == more, "a start reads the stored configs"
    assert alter(broker, {"listeners": None, "listener.security.protocol.map": None}) == (0, None)
    assert eventually(lambda: is_refused(broker.host, more), accept=bool)


@pytest.mark.oracle
def test_changes_that_are_refused(new_broker: Callable[..., Broker]) -> None:
    broker = new_broker(**{"listener.security.protocol.map": MAP})
    own = f"PLAINTEXT://{broker.host}:{broker.port}"
    extra = "EXTRA://127.0.0.1:1"
    both = f"{own},{extra}"
    for configs, said in (
        ({"listeners": extra}, "inter.broker.listener.name must be a listener name defined in advertised.listeners."),
        ({"listeners": f"{own},OTHER://127.0.0.1:1"}, "No security protocol defined for listener OTHER"),
        ({"listeners": f"{own},{own}"}, "Each listener must have a different name, listeners: "),
        ({"listeners": f"{own},EXTRA://127.0.0.1:{broker.port}"}, "If you have two listeners on the same port then "),
        ({"advertised.listeners": extra}, "inter.broker.listener.name must be a listener name defined in advertised."),
        (
            {"advertised.listeners": both},
            "advertised.listeners listener names must be equal to or a subset of the ones ",
        ),
        ({"listener.security.protocol.map": "EXTRA:PLAINTEXT"}, "No security protocol defined for listener PLAINTEXT"),
        (
            {"listeners": both, "listener.name.plaintext.some.config": "x"},
            "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart broker or ",
        ),
    ):
        code, message = alter(broker, configs, validate_only=True)
        assert (code, said in str(message)) == (INVALID_REQUEST, True), (configs, message)
    for accepted in ({"listener.name.plaintext.some.config": "x"}, {"listeners": both}):
        assert alter(broker, accepted, validate_only=True) == (0, None)
