"""Dynamic configs that a broker accepts.

Those of Apache Kafka: `conformance/transcripts/configs/test_transcripts_config_values.py`.
"""

from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.dynamic.reconfiguration import (
    check_change,
    check_reconfiguration,
    is_password,
    names_of_one_broker,
)
from odradek.broker.config.keys.sasl import DEFAULT_PRINCIPAL_BUILDER, UNSECURED_VALIDATOR
from odradek.storage.config.config_def import ConfigError


@pytest.mark.parametrize(
    ("configs", "per_broker", "refusal"),
    [
        ({"broker.id": "4"}, True, "Cannot update these configs dynamically: Set(broker.id)"),
        ({"ssl.keystore.type": "JKS"}, True, "only per-listener using the listener prefix: Set(ssl.keystore.type)"),
        ({"listener.name.x.max.connections": "-1"}, True, "for configuration max.connections: Value must be at least"),
        (
            {"listener.name.x.ssl.client.auth": "often"},
            True,
            "for configuration ssl.client.auth: String must be one of",
        ),
        ({"principal.builder.class": "a.B"}, True, "Class a.B could not be found."),
        ({"listener.name.x.principal.builder.class": "os:PathLike"}, True, "Class os:PathLike could not be found."),
        ({"listener.name.x.plain.sasl.server.callback.handler.class": "a.B"}, True, "Class a.B could not be found."),
        ({"listener.name.x.ssl.keystore.type": "JKS"}, False, "broker id must be specified: Set(listener.name.x.ssl"),
        ({"listeners": "PLAINTEXT://h:1"}, False, "broker id must be specified: Set(listeners)"),
    ],
)
def test_names_and_types_are_checked(configs: dict[str, str], per_broker: bool, refusal: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_change(configs, per_broker=per_broker)
    assert refusal in str(refused.value)


def test_accepted_configs() -> None:
    check_change({"no.such.key": "x", "log.roll.ms": "5", "listener.name.x.max.connections": "7"}, per_broker=False)
    check_change({"principal.builder.class": DEFAULT_PRINCIPAL_BUILDER}, per_broker=True)
    check_change(
        {"listener.name.x.oauthbearer.sasl.server.callback.handler.class": UNSECURED_VALIDATOR}, per_broker=True
    )
    check_change({"listener.name.x.ssl.keystore.password": "y", "sasl.jaas.config": "z"}, per_broker=True)
    assert names_of_one_broker(["listener.name.x.num.network.threads", "listener.name.x.log.roll.ms"]) == [
        "listener.name.x.log.roll.ms"
    ]


def test_passwords_are_known_by_their_ends() -> None:
    assert is_password("listener.name.x.ssl.keystore.password")
    assert is_password("listener.name.x.plain.sasl.jaas.config")
    assert not is_password("ssl.keystore.type")


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"num.io.threads": "3"}, "num.io.threads=3, value should be at least half the current value 8"),
        ({"background.threads": "21"}, "should not be greater than double the current value 10"),
        ({"num.replica.fetchers": "0"}, "num.replica.fetchers=0, value should be at least 1"),
        ({"num.network.threads": "7"}, "num.network.threads=7, value should not be greater than double"),
        ({"listener.name.plaintext.num.network.threads": "7"}, "should not be greater than double the current value 3"),
        ({"listener.name.plaintext.max.connections": "0"}, "Invalid max.connections 0"),
        ({"listener.name.plaintext.fetch.max.bytes": "1"}, "Value must be at least 1024"),
        ({"metric.reporters": "a.B"}, "a.B"),
        ({"log.local.retention.ms": "-1"}, "Value must not be -1 as log.retention.ms value is set as 604800000."),
        ({"log.local.retention.bytes": "9", "log.retention.bytes": "8"}, "log.retention.bytes property value: 8"),
    ],
)
def test_running_parts_change_so_far_and_no_farther(changed: dict[str, str], refusal: str) -> None:
    old = BrokerConfig({})
    with pytest.raises(ConfigError) as refused:
        check_reconfiguration(old, old.with_dynamic(broker=changed, default={}))
    assert refusal in str(refused.value)


def test_changes_within_reason() -> None:
    old = BrokerConfig({})
    changed = {"num.io.threads": "16", "num.network.threads": "1", "listener.name.other.max.connections": "0"}
    check_reconfiguration(old, old.with_dynamic(broker=changed, default={}))
    reporter = {"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter"}
    check_reconfiguration(old, old.with_dynamic(broker=reporter, default={}))
