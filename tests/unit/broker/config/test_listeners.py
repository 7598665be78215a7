from __future__ import annotations

import pytest

from odradek.broker.config.config_keys import BROKER_CONFIGS
from odradek.broker.config.listeners import Listeners, ListenerSecurity
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.storage.config.config_def import ConfigError

PLAINTEXT = SecurityProtocol.PLAINTEXT
ONE = {"listeners": "PLAINTEXT://:1"}
TWO = {
    "zookeeper.connect": "localhost:2181",
    "listeners": "CLIENTS://:9092,BROKERS://:9093",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "brokers",
}


def listeners(settings: dict[str, str], *, protocol_is_set: bool = False) -> Listeners:
    return Listeners.of_values(BROKER_CONFIGS.parse_all({**settings}), inter_broker_protocol_is_set=protocol_is_set)


def test_bound_listeners_are_advertised_by_default() -> None:
    found = listeners(TWO)
    assert found.advertised == found.bound
    found = listeners({**TWO, "advertised.listeners": "BROKERS://public:1"})
    assert [str(end_point) for end_point in found.advertised] == ["BROKERS://public:1"]
    assert [end_point.port for end_point in found.bound] == [9092, 9093]


def test_a_lone_broker_that_advertises_nothing_names_the_connected_address() -> None:
    assert listeners(ONE).advertise_connected_address
    assert not listeners({**ONE, "advertised.listeners": "PLAINTEXT://h:1"}).advertise_connected_address
    assert not listeners({**ONE, "zookeeper.connect": "h:1"}).advertise_connected_address


def test_the_controller_is_reached_between_brokers_without_a_control_plane() -> None:
    found = listeners(TWO)
    assert found.inter_broker == found.control == ListenerSecurity("BROKERS", PLAINTEXT)
    assert found.control_plane is None
    found = listeners({**TWO, "control.plane.listener.name": "Clients"})
    assert found.control_plane == found.control == ListenerSecurity("CLIENTS", PLAINTEXT)
    assert found.inter_broker.name == "BROKERS"


def test_without_a_name_the_listener_between_brokers_is_that_of_the_protocol() -> None:
    assert listeners({**ONE, "security.inter.broker.protocol": "SSL"}).inter_broker == ("SSL", SecurityProtocol.SSL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"advertised.listeners": ","}, "There must be at least one broker advertised listener."),
        ({"inter.broker.listener.name": "x"}, "Listener with name X defined in inter.broker.listener.name not found"),
        ({"control.plane.listener.name": "x"}, "Listener with X defined in control.plane.listener.name not found"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        listeners(settings)


def test_name_and_protocol_between_brokers_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="Only one of inter"):
        listeners(TWO, protocol_is_set=True)
