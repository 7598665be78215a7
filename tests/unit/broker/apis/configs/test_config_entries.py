"""The broker's configs as DescribeConfigs shows them."""

from __future__ import annotations

from odradek.broker.apis.configs.config_entries import broker_configs, cluster_default_configs
from odradek.broker.config.broker_config import BrokerConfig
from odradek.protocol.messages.describe_configs import DescribeConfigsResourceResult

DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5


def entries(config: BrokerConfig) -> dict[str, DescribeConfigsResourceResult]:
    return {entry.name: entry for entry in broker_configs(config)}


def test_value_and_source_are_those_in_force() -> None:
    config = BrokerConfig({"log.retention.ms": "1"})
    found = entries(config)
    assert (found["log.retention.ms"].value, found["log.retention.ms"].config_source) == ("1", STATIC)
    assert found["log.segment.bytes"].config_source == DEFAULT
    config.apply_dynamic(broker={"log.retention.ms": "2"}, default={"log.retention.ms": "3"})
    entry = entries(config)["log.retention.ms"]
    assert (entry.value, entry.config_source) == ("2", DYNAMIC)
    synonyms = [(synonym.value, synonym.source) for synonym in entry.synonyms if synonym.name == "log.retention.ms"]
    assert synonyms == [("2", DYNAMIC), ("3", DYNAMIC_DEFAULT), ("1", STATIC)]


def test_secrets_have_no_value_anywhere() -> None:
    entry = entries(BrokerConfig({"ssl.keystore.password": "hush"}))["ssl.keystore.password"]
    assert entry.is_sensitive
    assert entry.value is None
    assert {synonym.value for synonym in entry.synonyms} == {None}


def test_dynamic_configs_are_not_read_only() -> None:
    found = entries(BrokerConfig({}))
    assert found["broker.id"].read_only
    assert not found["log.retention.ms"].read_only


def test_defaults_of_all_brokers_are_shown_without_those_of_this_one() -> None:
    config = BrokerConfig({"log.retention.ms": "1"})
    config.apply_dynamic(broker={"log.retention.ms": "2"}, default={"log.retention.ms": "3"})
    (entry,) = cluster_default_configs(config, config.dynamic_defaults)
    assert (entry.name, entry.value) == ("log.retention.ms", "3")
    assert {synonym.source for synonym in entry.synonyms} == {DYNAMIC_DEFAULT}


def test_kafkas_keys_and_other_set_keys_are_described() -> None:
    """314 keys of Apache Kafka 3.9 are not internal."""
    kafkas = set(entries(BrokerConfig({})))
    assert len(kafkas) == 314
    own = {"odradek.validate.records": "always", "log.initial.task.delay.ms": "1", "no.such.key": "x"}
    config = BrokerConfig(own)
    config.apply_dynamic(broker={"leader.replication.throttled.rate": "5"}, default={"another.key": "y"})
    found = entries(config)
    assert set(found) - kafkas == {*own, "leader.replication.throttled.rate", "another.key"}
    rate = found["leader.replication.throttled.rate"]
    assert (rate.value, rate.config_source, rate.is_sensitive, rate.config_type) == ("5", DYNAMIC, False, 5)
    assert rate.read_only, "as Apache has it: it is none of the keys that a broker reconfigures"
    assert [(found[name].value, found[name].is_sensitive) for name in ("no.such.key", "another.key")] == [
        (None, True),
        (None, True),
    ]


def test_values_are_shown_as_they_were_understood() -> None:
    found = entries(
        BrokerConfig(
            {"log.roll.ms": " 5 ", "log.cleanup.policy": "compact, delete", "auto.include.jmx.reporter": "TRUE"}
        )
    )
    assert found["log.roll.ms"].value == "5"
    assert found["log.cleanup.policy"].value == "compact,delete"
    assert found["auto.include.jmx.reporter"].value == "true"


def test_types_are_those_of_the_key_itself() -> None:
    found = entries(BrokerConfig({"listener.name.plaintext.max.connections": "5"}))
    types = {name: found[name].config_type for name in ("log.retention.ms", "log.retention.hours")}
    assert types == {"log.retention.ms": 5, "log.retention.hours": 3}
    listener = found["listener.name.plaintext.max.connections"]
    assert (listener.value, listener.config_type, listener.read_only) == ("5", 3, True)
