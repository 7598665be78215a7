from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.keys.sasl import DEFAULT_PRINCIPAL_BUILDER, LOGINS, UNSECURED_LOGIN
from odradek.storage.config.config_def import ConfigError

PREFIX = "listener.name.plaintext.oauthbearer."


@pytest.mark.parametrize(
    ("key", "classes"),
    [
        ("sasl.login.callback.handler.class", (*LOGINS, UNSECURED_LOGIN)),
    ],
)
def test_known_classes_are_taken_and_others_refused(key: str, classes: tuple[str, ...]) -> None:
    for name in classes:
        config = BrokerConfig({f"{PREFIX}{key}": name})
        assert config.listener_value("PLAINTEXT", key, "OAUTHBEARER") == name
    with pytest.raises(ConfigError, match="must be one of"):
        BrokerConfig({f"{PREFIX}{key}": "com.example.Handler"})


def test_a_class_counts_with_the_prefixes_of_its_listener_and_mechanism() -> None:
    key = "sasl.server.callback.handler.class"
    config = BrokerConfig({key: "a.A", f"listener.name.x.{key}": "a.B", f"listener.name.x.plain.{key}": "a.C"})
    assert config.listener_class("X", key, "PLAIN") == "a.C"
    assert config.listener_class("X", key, "SCRAM-SHA-256") is None
    with pytest.raises(ConfigError, match="Class no path could not be found"):
        BrokerConfig({f"listener.name.x.plain.{key}": "no path"}).listener_class("X", key, "PLAIN")


def test_a_class_of_a_listener_takes_the_place_of_the_brokers() -> None:
    key = "principal.builder.class"
    config = BrokerConfig({key: "a.A", f"listener.name.x.{key}": "a.B"})
    assert [config.listener_class(name, key) for name in ("X", "Y")] == ["a.B", "a.A"]


def test_a_dynamic_config_names_no_class() -> None:
    """In ZooKeeper anybody may have written one."""
    key = "principal.builder.class"
    config = BrokerConfig({}).with_dynamic(broker={f"listener.name.x.{key}": "a.B"}, default={})
    with pytest.raises(ConfigError, match=r"listener\.name\.x\..*=a\.B is a dynamic config"):
        config.listener_class("X", key)
    assert BrokerConfig({}).listener_class("X", key) == DEFAULT_PRINCIPAL_BUILDER
