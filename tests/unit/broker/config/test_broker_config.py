from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import EMBEDDED_METADATA_DEFAULTS, BrokerConfig
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, UpdateMode, config_synonyms
from odradek.broker.config.config_values import BrokerConfigValues
from odradek.broker.config.endpoint import EndPoint
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.model.config_codes import ConfigSource
from odradek.storage.config.config_def import ConfigError, ConfigType, Password
from odradek.storage.config.log_config import TOPIC_CONFIG_SYNONYMS

ZOOKEEPER = {"zookeeper.connect": "localhost:2181"}
TYPES = {
    ConfigType.BOOLEAN: "bool",
    ConfigType.STRING: "str",
    ConfigType.INT: "int",
    ConfigType.SHORT: "int",
    ConfigType.LONG: "int",
    ConfigType.DOUBLE: "float",
    ConfigType.LIST: "list[str]",
    ConfigType.CLASS: "str",
}


def refusal(**settings: str) -> str:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({key.replace("_", "."): value for key, value in settings.items()})
    return str(refused.value)


# -- the table


def test_table_is_whole_and_every_default_is_a_value() -> None:
    assert len(BROKER_CONFIG_KEYS) == 328 + 12  # Kafka 3.9 and ours
    for key in BROKER_CONFIG_KEYS.values():
        value = key.default_value()
        if value is not None and key.validator is not None:
            key.validator.ensure_valid(key.name, value)


def test_every_key_is_documented_in_a_sentence() -> None:
    undocumented = [key.name for key in BROKER_CONFIG_KEYS.values() if not key.doc.endswith(".")]
    assert undocumented == []


def test_typed_attributes_have_the_types_of_the_table() -> None:
    for attribute, annotation in BrokerConfigValues.__annotations__.items():
        key = BROKER_CONFIG_KEYS[attribute.replace("_", ".")]
        expected = TYPES[key.type] + (" | None" if key.default is None else "")
        assert annotation == expected, key.name


def test_broker_synonyms_of_topic_configs_are_keys() -> None:
    for synonyms in TOPIC_CONFIG_SYNONYMS.values():
        for synonym in synonyms:
            assert synonym.name in BROKER_CONFIG_KEYS


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("log.segment.bytes", UpdateMode.CLUSTER_WIDE),
        ("listeners", UpdateMode.PER_BROKER),
        ("ssl.keystore.password", UpdateMode.PER_BROKER),
        ("broker.id", UpdateMode.READ_ONLY),
    ],
)
def test_how_keys_can_be_updated(name: str, mode: UpdateMode) -> None:
    assert BROKER_CONFIG_KEYS[name].update_mode is mode


# -- values and defaults


def test_values_are_typed() -> None:
    config = BrokerConfig({**ZOOKEEPER, "log.cleanup.policy": "compact, delete", "ssl.key.password": "secret"})
    assert config.log_segment_bytes == 1 << 30
    assert config.auto_create_topics_enable is True
    assert config.log_cleanup_policy == ["compact", "delete"]
    assert config.log_roll_ms is None
    assert config.value("ssl.key.password") == Password("secret")


def test_lone_broker_has_defaults_that_work_and_shows_them() -> None:
    config = BrokerConfig({})
    assert config.listeners.bound == (EndPoint("127.0.0.1", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT),)
    assert config.offsets_topic_replication_factor == 1
    assert config.transaction_state_log_replication_factor == config.transaction_state_log_min_isr == 1
    assert config.source("offsets.topic.replication.factor") is ConfigSource.STATIC_BROKER_CONFIG
    assert config.metadata_dir == config.log_dirs[0] == "odradek-data"
    assert config.broker_id == 0
    assert config.listeners.advertise_connected_address
    assert not config.uses_zookeeper


def test_member_of_a_zookeeper_cluster_has_kafkas_defaults() -> None:
    config = BrokerConfig(ZOOKEEPER)
    assert config.listeners.bound == (EndPoint(None, 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT),)
    assert config.offsets_topic_replication_factor == 3
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.broker_id == -1
    assert not config.listeners.advertise_connected_address
    for name in EMBEDDED_METADATA_DEFAULTS:
        assert config.source(name) is ConfigSource.DEFAULT_CONFIG


def test_settings_beat_the_defaults_of_a_single_broker() -> None:
    config = BrokerConfig({"offsets.topic.replication.factor": "2", "log.dir": "/data", "metadata.dir": "/meta"})
    assert config.offsets_topic_replication_factor == 2
    assert config.log_dirs == ("/data",)
    assert config.metadata_dir == "/meta"


def test_several_log_dirs() -> None:
    assert BrokerConfig({"log.dirs": "/a , /b,/c", "log.dir": "/d"}).log_dirs == ("/a", "/b", "/c")


def test_node_id_and_broker_id_stand_for_one_another() -> None:
    assert BrokerConfig({"node.id": "7"}).broker_id == 7
    assert "node.id" in refusal(broker_id="1", node_id="2")


def test_unknown_keys_are_listed_and_listener_prefixes_are_known() -> None:
    settings = {"log.segement.bytes": "1", "listener.name.plaintext.ssl.key.password": "x", "broker.rack": "r"}
    assert BrokerConfig(settings).unknown_keys == ["log.segement.bytes"]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("sasl.server.max.receive.size", None),
        ("sasl.kerberos.service.name", None),
        ("sasl.kerberos.principal.to.local.rules", None),
        ("sasl.oauthbearer.expected.issuer", None),
        ("oauthbearer.sasl.oauthbearer.expected.issuer", None),
        ("plain.connections.max.reauth.ms", None),
        ("ssl.cipher.suites", None),
        ("a.key.of.a.class", None),
        ("plain.sasl.server.max.receive.size", "it has no effect for a single mechanism"),
        ("sasl.mechanism.inter.broker.protocol", "it has no effect for a single listener"),
        ("log.roll.ms", "it has no effect for a single listener"),
        ("sasl.kerberos.kinit.cmd", "nothing renews the tickets of a ticket cache"),
        ("gssapi.sasl.kerberos.kinit.cmd", "nothing renews the tickets of a ticket cache"),
        ("ssl.engine.factory.class", "there is no JVM that could load a class"),
    ],
)
def test_what_does_not_act_on_a_listener_is_listed_with_the_reason(key: str, reason: str | None) -> None:
    config = BrokerConfig({f"listener.name.other.{key}": "1"})
    assert config.keys_without_effect.get(f"listener.name.other.{key}") == reason
    assert bool(config.unknown_keys) is (key == "a.key.of.a.class")


def test_limits_that_are_not_enforced_are_listed_when_they_are_set() -> None:
    assert BrokerConfig({"num.network.threads": "3"}).keys_without_effect == {}, (
        "the server.properties of Apache sets it"
    )
    told = BrokerConfig(
        {
            "num.io.threads": "5",
            "metric.reporters": "a.B",
            "listener.name.plaintext.max.connections": "9",
            "listener.name.plaintext.num.network.threads": "9",
            "log.roll.ms": "5",
        }
    ).keys_without_effect
    assert list(told) == ["listener.name.plaintext.num.network.threads", "metric.reporters", "num.io.threads"]
    assert all(told.values())


# -- refusals


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"log.segment.bytes": "many"},
            "Invalid value many for configuration log.segment.bytes: Not a number of type INT",
        ),
        ({"num.partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ({"compression.type": "rar"}, "Invalid value rar for configuration compression.type: String must be one of"),
        ({"max.connections.per.ip.overrides": "a:b"}, "max.connections.per.ip.overrides"),
        ({"max.connections.per.ip.overrides": "a"}, "Error parsing configuration property"),
        ({"odradek.validate.records": "never"}, "String must be one of: when-needed, always"),
    ],
)
def test_refused_with_the_name_of_the_key(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(settings)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_refusal_says_where_the_value_was_found() -> None:
    with pytest.raises(ConfigError, match=r"\(from environment variable KAFKA_BROKER_ID\)"):
        BrokerConfig({"broker.id": "x"}, origins={"broker.id": "environment variable KAFKA_BROKER_ID"})


# -- listeners


def test_listeners_with_names_of_their_own() -> None:
    config = BrokerConfig(
        {
            "listeners": "internal://10.0.0.1:9092,EXTERNAL://:19092",
            "advertised.listeners": "INTERNAL://broker:9092,EXTERNAL://kafka.example:443",
            "listener.security.protocol.map": "internal:PLAINTEXT,EXTERNAL:plaintext",
            "inter.broker.listener.name": "INTERNAL",
        }
    )
    assert [str(end_point) for end_point in config.listeners.bound] == ["INTERNAL://10.0.0.1:9092", "EXTERNAL://:19092"]
    assert [end_point.host for end_point in config.listeners.advertised] == ["broker", "kafka.example"]
    assert config.listeners.inter_broker.name == "INTERNAL"
    assert not config.listeners.advertise_connected_address


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "PLAINTEXT//:9092"}, "Unable to parse PLAINTEXT//:9092 to a broker endpoint"),
        ({"listeners": "X://:9092"}, "No security protocol defined for listener X"),
        ({"listeners": ""}, "at least one broker advertised listener"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "Each listener must have a different name"),
        (
            {
                "listeners": "PLAINTEXT://:1,B://:1",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            },
            "Each listener must have a different port",
        ),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "Invalid security protocol `TLS` defined in"),
        ({"inter.broker.listener.name": "NOPE"}, "Listener with name NOPE defined in inter.broker.listener.name"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
    ],
)
def test_listeners_are_checked_with_kafkas_rules(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(settings)
    assert message in str(refused.value)


def test_one_port_for_an_ipv4_and_an_ipv6_address() -> None:
    names = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"}
    config = BrokerConfig({**names, "listeners": "PLAINTEXT://127.0.0.1:9092,B://[::1]:9092"})
    assert [end_point.host for end_point in config.listeners.bound] == ["127.0.0.1", "::1"]
    with pytest.raises(ConfigError, match="one needs to be IPv4 and the other IPv6"):
        BrokerConfig({**names, "listeners": "PLAINTEXT://127.0.0.1:9092,B://10.0.0.1:9092"})
    with pytest.raises(ConfigError, match="unless exactly one listener has an IPv4 address"):
        BrokerConfig({**names, "listeners": "PLAINTEXT://127.0.0.1:9092,B://[::1]:9092,C://[::2]:9092"})


def test_wildcard_may_be_listened_on_but_is_not_advertised() -> None:
    assert BrokerConfig({"listeners": "PLAINTEXT://0.0.0.0:9092"}).listeners.advertise_connected_address
    with pytest.raises(ConfigError, match="nonroutable"):
        BrokerConfig({**ZOOKEEPER, "listeners": "PLAINTEXT://0.0.0.0:9092"})


# -- where values come from, for DescribeConfigs


def test_synonyms_are_in_order_of_precedence() -> None:
    config = BrokerConfig({"log.retention.hours": "5"})
    assert config.synonyms("log.retention.hours") == [
        ("log.retention.hours", "5", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    ]
    config.apply_dynamic(broker={"log.retention.ms": "1000"}, default={"log.retention.ms": "2000"})
    assert config.synonyms("log.retention.ms") == [
        ("log.retention.ms", "1000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("log.retention.ms", "2000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.retention.hours", "5", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    ]


def test_listener_keys_fall_back_to_the_plain_key() -> None:
    name = "listener.name.external.ssl.keystore.location"
    assert config_synonyms(name) == (name, "ssl.keystore.location")
    mechanism = "listener.name.external.plain.sasl.jaas.config"
    assert config_synonyms(mechanism) == (mechanism, "sasl.jaas.config")


def test_secrets_are_shown_nowhere() -> None:
    config = BrokerConfig({"ssl.keystore.password": "canary", "odd.unknown.key": "canary"})
    for name in ("ssl.keystore.password", "odd.unknown.key"):
        assert config.is_sensitive(name)
        assert config.text(name) is None
        assert all(synonym.value is None for synonym in config.synonyms(name))
    assert "canary" not in repr(config.value("ssl.keystore.password"))


# -- dynamic values


def test_dynamic_value_is_in_force_at_once_and_can_be_taken_back() -> None:
    config = BrokerConfig({"log.segment.bytes": "1000000"})
    changed = config.apply_dynamic(broker={}, default={"log.segment.bytes": "2000000"})
    assert changed == {"log.segment.bytes"}
    assert config.log_segment_bytes == 2_000_000
    assert config.settings["log.segment.bytes"] == "2000000"
    assert config.source("log.segment.bytes") is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    config.apply_dynamic(broker={"log.segment.bytes": "3000000"}, default={"log.segment.bytes": "2000000"})
    assert config.log_segment_bytes == 3_000_000
    assert config.apply_dynamic(broker={}, default={}) == {"log.segment.bytes"}
    assert config.log_segment_bytes == 1_000_000


def test_dynamic_value_hides_a_static_synonym() -> None:
    config = BrokerConfig({"log.retention.ms": "5000"})
    config.apply_dynamic(broker={}, default={"log.retention.hours": "1"})
    assert config.log_retention_ms is None
    assert config.log_retention_hours == 1


def test_bad_dynamic_value_changes_nothing() -> None:
    config = BrokerConfig({})
    with pytest.raises(ConfigError):
        config.apply_dynamic(broker={"log.segment.bytes": "2000000", "num.io.threads": "none"}, default={})
    with pytest.raises(ConfigError):
        config.apply_dynamic(broker={"listeners": "nonsense"}, default={})
    assert config.log_segment_bytes == 1 << 30
    assert "log.segment.bytes" not in config.settings
    assert config.listeners.bound[0].port == 9092


def test_the_limit_of_a_listener_is_parsed_once_and_follows_dynamic_values(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "listener.name.plaintext.max.connections"
    config = BrokerConfig({key: "7", "max.connections": "9"})
    candidate = config.with_dynamic(broker={key: "8"}, default={})
    limits = [(config.listener_limit(name, "max.connections")) for name in ("PLAINTEXT", "OTHER")]
    assert limits == [7, 9]
    assert candidate.listener_limit("PLAINTEXT", "max.connections") == 8
    monkeypatch.setattr(type(BROKER_CONFIG_KEYS["max.connections"]), "parse", None)
    assert config.listener_limit("PLAINTEXT", "max.connections") == 7
    monkeypatch.undo()
    config.apply_dynamic(broker={key: "6"}, default={})
    assert config.listener_limit("PLAINTEXT", "max.connections") == 6
