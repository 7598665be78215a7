from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.protocol.metadata_version import MetadataVersion
from odradek.storage.config.config_def import ConfigError

ZOOKEEPER = {"zookeeper.connect": "localhost:2181"}
TWO_LISTENERS = {
    "listeners": "PLAINTEXT://:9092,B://:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
}


def refusal(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(settings)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# -- between plain values: the limit is refused on one side and taken on the other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        (
            {"log.cleaner.dedupe.buffer.size": "1048576"},
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            {"log.cleaner.dedupe.buffer.size": "2097153", "log.cleaner.threads": "2"},
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        ({"log.cleaner.threads": "0"}, "Log cleaner threads should be at least 1"),
        (
            {"offsets.commit.required.acks": "-2"},
            "offsets.commit.required.acks must be greater or equal to -1 and less or equal to "
            "offsets.topic.replication.factor",
        ),
        (
            {"offsets.commit.required.acks": "3", "offsets.topic.replication.factor": "2"},
            "offsets.commit.required.acks must be greater or equal to -1 and less or equal to "
            "offsets.topic.replication.factor",
        ),
        (
            {"group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor,"},
            "Class  cannot be found (from group.consumer.assignors)",
        ),
        ({"offsets.topic.compression.codec": "-1"}, "Unknown compression type id: -1"),
        ({"offsets.topic.compression.codec": "5"}, "Unknown compression type id: 5"),
        (
            {"group.share.record.lock.duration.ms": "14999"},
            "group.share.record.lock.duration.ms must be greater than or equals to "
            "group.share.min.record.lock.duration.ms",
        ),
        (
            {"group.share.record.lock.duration.ms": "30001", "group.share.max.record.lock.duration.ms": "30000"},
            "group.share.max.record.lock.duration.ms must be greater than or equals to "
            "group.share.record.lock.duration.ms",
        ),
        ({"socket.receive.buffer.bytes": "0"}, "socket.receive.buffer.bytes=0: size cannot be 0 or negative"),
        ({"socket.receive.buffer.bytes": "-2"}, "socket.receive.buffer.bytes=-2: size cannot be 0 or negative"),
        (
            {"replica.fetch.wait.max.ms": "501", "replica.socket.timeout.ms": "500"},
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary "
            "socket timeouts",
        ),
        (
            {"replica.fetch.wait.max.ms": "501", "replica.lag.time.max.ms": "500"},
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent "
            "frequent changes in ISR",
        ),
        (
            {"queued.max.request.bytes": "99", "socket.request.max.bytes": "100"},
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (
            {"connections.max.idle.ms": "100"},
            "connection.failed.authentication.delay.ms=100 should always be less than connections.max.idle.ms=100 to "
            "prevent failed authentication responses from timing out",
        ),
        (
            {"inter.broker.protocol.version": "0.10.2"},
            "log.message.format.version 3.0-IV1 can only be used when inter.broker.protocol.version is set to version "
            "0.11.0 or higher",
        ),
        (
            {"inter.broker.protocol.version": "0.9.0", "log.message.format.version": "0.10.0"},
            "log.message.format.version 0.10.0 can only be used when inter.broker.protocol.version is set to version "
            "0.10.0 or higher",
        ),
        (
            {
                "inter.broker.protocol.version": "0.10.0",
                "log.message.format.version": "0.10.0",
                "offsets.topic.compression.codec": "4",
            },
            "offsets.topic.compression.codec zstd can only be used when inter.broker.protocol.version is set to "
            "version 2.1 or higher",
        ),
        (
            {"inter.broker.protocol.version": "2.6", **ZOOKEEPER},
            "inter.broker.protocol.version=2.6 is not supported with zookeeper.connect: brokers of releases before 2.7 "
            "do not understand the requests that this broker sends to others.",
        ),
    ],
)
def test_relation_that_does_not_hold_is_refused(settings: dict[str, str], message: str) -> None:
    assert refusal(settings) == message


@pytest.mark.parametrize(
    "settings",
    [
        {"log.roll.ms": "1"},
        {"log.roll.jitter.ms": "0"},
        {"log.retention.ms": "1"},
        {"log.retention.ms": "-1"},
        {"log.cleaner.dedupe.buffer.size": "1048577"},
        {"offsets.commit.required.acks": "-1"},
        {"offsets.commit.required.acks": "2", "offsets.topic.replication.factor": "2"},
        {"offsets.topic.compression.codec": "0"},
        {"offsets.topic.compression.codec": "4"},
        {"group.share.record.lock.duration.ms": "15000"},
        {"group.share.record.lock.duration.ms": "30000", "group.share.max.record.lock.duration.ms": "30000"},
        {"socket.receive.buffer.bytes": "1"},
        {"socket.receive.buffer.bytes": "-1"},
        {"log.cleaner.dedupe.buffer.size": "2097154", "log.cleaner.threads": "2"},
        {"replica.fetch.wait.max.ms": "500", "replica.socket.timeout.ms": "500"},
        {"replica.fetch.wait.max.ms": "500", "replica.lag.time.max.ms": "500"},
        {"queued.max.request.bytes": "100", "socket.request.max.bytes": "100"},
        {"queued.max.request.bytes": "-1", "socket.request.max.bytes": "100"},
        {"connections.max.idle.ms": "101"},
        {"connections.max.idle.ms": "-1"},
    ],
)
def test_relation_that_just_holds_is_taken(settings: dict[str, str]) -> None:
    config = BrokerConfig(settings)
    assert {name: config.value(name) for name in settings} == {name: int(text) for name, text in settings.items()}


@pytest.mark.parametrize("kind", ["consumer", "share"])
@pytest.mark.parametrize("limit", ["heartbeat.interval.ms", "session.timeout.ms"])
def test_values_of_the_new_groups_lie_between_their_limits(kind: str, limit: str) -> None:
    name, low, high = f"group.{kind}.{limit}", f"group.{kind}.min.{limit}", f"group.{kind}.max.{limit}"

    def texts(*values: int) -> dict[str, str]:
        return {key: str(value) for key, value in zip((low, name, high), values, strict=True)}

    assert BrokerConfig(texts(10, 10, 10)).value(name) == 10
    assert refusal(texts(11, 10, 10)) == f"{high} must be greater than or equals to {low}"
    assert refusal(texts(10, 9, 10)) == f"{name} must be greater than or equals to {low}"
    assert refusal(texts(10, 11, 10)) == f"{name} must be less than or equals to {high}"


def test_the_cleaner_has_room_for_more_than_one_key_per_pass() -> None:
    """1 MiB and 24 bytes: 43,691 slots."""
    buffer = {"log.cleaner.dedupe.buffer.size": str(43_691 * 24)}
    message = "offset map is too small to fit in even a single message"
    assert refusal({**buffer, "log.cleaner.io.buffer.load.factor": "0.00002"}).startswith(message)
    assert refusal({"log.cleaner.io.buffer.load.factor": "NaN"}).startswith(message)
    assert BrokerConfig({**buffer, "log.cleaner.io.buffer.load.factor": "0.00003"}).log_cleaner_enable
    off = {"log.cleaner.io.buffer.load.factor": "0", "log.cleaner.enable": "false"}
    assert not BrokerConfig(off).log_cleaner_enable


def test_versions_between_brokers_that_just_hold_are_taken() -> None:
    old_format = {"log.message.format.version": "0.10.0"}
    for settings in (
        {"inter.broker.protocol.version": "0.10.0", **old_format},
        {"inter.broker.protocol.version": "2.7-IV0", **ZOOKEEPER},
        {"inter.broker.protocol.version": "4.0-IV1", **old_format},
    ):
        config = BrokerConfig(settings)
        assert config.metadata_version is MetadataVersion.of_text(settings["inter.broker.protocol.version"])


def test_relations_are_checked_for_dynamic_values_too() -> None:
    config = BrokerConfig({})
    with pytest.raises(ConfigError, match="at least 1MB per cleaner thread"):
        config.apply_dynamic(broker={}, default={"log.cleaner.dedupe.buffer.size": "1048576"})


# -- the identity of the broker


def test_generated_broker_ids_begin_above_the_reserved_ones() -> None:
    assert BrokerConfig({"broker.id": "1000"}).broker_id == 1000
    message = "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id"
    assert refusal({"broker.id": "1001"}) == message
    assert refusal({"broker.id": "-2"}) == message
    assert BrokerConfig({"broker.id": "1001", "reserved.broker.max.id": "1001"}).broker_id == 1001


def test_without_generated_ids_any_number_is_good_but_one_is_needed() -> None:
    settings = {**ZOOKEEPER, "broker.id.generation.enable": "false"}
    assert BrokerConfig({**settings, "broker.id": "1001"}).broker_id == 1001
    assert refusal({**settings, "broker.id": "-1"}) == "broker.id must be greater than or equal to 0"
    assert refusal(settings) == "broker.id must be greater than or equal to 0"


def test_node_id_must_be_the_broker_id() -> None:
    message = "You must set `node.id` to the same value as `broker.id`."
    assert refusal({"broker.id": "1", "node.id": "2"}) == message


# -- places and limits


def test_log_directory_is_needed() -> None:
    message = "At least one log directory must be defined via log.dirs or log.dir."
    assert refusal({"log.dirs": ""}) == message
    assert refusal({"log.dirs": " , "}) == message


def test_connections_per_address_may_be_zero_with_an_override() -> None:
    message = "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
    assert refusal({"max.connections.per.ip": "0"}) == message
    config = BrokerConfig({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"})
    assert config.max_connections_per_ip_overrides == {"127.0.0.1": 1}


def test_exempt_addresses_look_like_addresses() -> None:
    message = "max.connections.per.ip.overrides contains invalid addresses : a/b,c d"
    assert refusal({"max.connections.per.ip.overrides": "a/b:1,host-1.example:2,::1:3,c d:4"}) == message


# -- what is not served is refused rather than ignored


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"process.roles": "broker"}, "no KRaft mode"),
        (
            {"zookeeper.metadata.migration.enable": "true"},
            "zookeeper.metadata.migration.enable is set, but there is no KRaft mode to migrate to.",
        ),
        (
            {"controller.listener.names": "CONTROLLER"},
            "controller.listener.names must be empty when not running in KRaft mode: [CONTROLLER]",
        ),
        (
            {
                "listeners": "SASL_SSL://:9093",
                "security.inter.broker.protocol": "SASL_SSL",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "sasl.enabled.mechanisms": "PLAIN",
            },
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for "
            "inter-broker communication",
        ),
        (
            {"group.coordinator.rebalance.protocols": "classic,consumer"},
            "The new 'consumer' rebalance protocol is only supported in KRaft cluster.",
        ),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "Disabling the 'classic' protocol is not supported.",
        ),
    ],
)
def test_unsupported_settings_are_refused(settings: dict[str, str], message: str) -> None:
    assert message in refusal(settings)


# -- listeners


def test_only_bound_listeners_can_be_advertised() -> None:
    advertised = "PLAINTEXT://h:1,B://h:2"
    message = (
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found "
        "PLAINTEXT,B. The valid options based on the current configuration are PLAINTEXT"
    )
    protocols = {"listener.security.protocol.map": TWO_LISTENERS["listener.security.protocol.map"]}
    assert refusal({**protocols, "advertised.listeners": advertised}) == message
    assert len(BrokerConfig({**TWO_LISTENERS, "advertised.listeners": advertised}).listeners.advertised) == 2
    assert len(BrokerConfig({**TWO_LISTENERS, "advertised.listeners": "PLAINTEXT://h:1"}).listeners.advertised) == 1


def test_inter_broker_listener_must_be_advertised() -> None:
    settings = {**TWO_LISTENERS, "advertised.listeners": "PLAINTEXT://h:1", "inter.broker.listener.name": "B"}
    assert refusal(settings) == (
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based "
        "on currently configured listeners are PLAINTEXT"
    )


@pytest.mark.parametrize("settings", [{"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, TWO_LISTENERS])
def test_wildcard_is_not_advertised(settings: dict[str, str]) -> None:
    wildcard = {**settings, "listeners": "PLAINTEXT://0.0.0.0:9092"}
    assert "cannot use the nonroutable meta-address 0.0.0.0" in refusal({**ZOOKEEPER, **wildcard})


def test_control_plane_has_a_listener_of_its_own() -> None:
    def control_plane(name: str) -> dict[str, str]:
        return {**TWO_LISTENERS, "control.plane.listener.name": name}

    assert "should have a different value from the inter broker listener name" in refusal(control_plane("PLAINTEXT"))
    hidden = {**control_plane("B"), "advertised.listeners": "PLAINTEXT://h:1"}
    assert "control.plane.listener.name must be a listener name defined in advertised.listeners" in refusal(hidden)
    assert BrokerConfig(control_plane("b")).listeners.control.name == "B"


@pytest.mark.parametrize("names", ["PLAINTEXT", " PLAINTEXT , ", ","])
def test_listeners_that_start_early_are_listeners(names: str) -> None:
    assert BrokerConfig({"early.start.listeners": names}).early_start_listeners is not None


@pytest.mark.parametrize(("names", "unknown"), [("X", "X"), ("PLAINTEXT, X", "X"), ("plaintext", "plaintext")])
def test_other_listeners_cannot_start_early(names: str, unknown: str) -> None:
    assert refusal({"early.start.listeners": names}) == (
        f"early.start.listeners contains listener {unknown}, but this is not contained in listeners or "
        "controller.listener.names"
    )


@pytest.mark.parametrize("name", ["max.connections", "plain.connections.max.reauth.ms"])
def test_settings_of_a_listener_are_values_of_their_key(name: str) -> None:
    key = f"listener.name.plaintext.{name}"
    message = f"Invalid value x for configuration {name.removeprefix('plain.')}: Not a number of type"
    assert refusal({key: "x"}).startswith(message)
    assert not BrokerConfig({key: "5"}).keys_without_effect


def test_a_setting_of_a_listener_that_has_no_effect_is_named() -> None:
    key = "listener.name.plaintext.connections.max.idle.ms"
    assert BrokerConfig({key: "5"}).keys_without_effect.keys() == {key}


@pytest.mark.parametrize(
    "key",
    [
        "listener.name.other.max.connections",
        "listener.name.PLAINTEXT.max.connections",
        "listener.name.plaintext.no.such",
    ],
)
def test_settings_of_no_listener_or_no_key_are_not_looked_at(key: str) -> None:
    assert BrokerConfig({key: "x"}).settings[key] == "x"


@pytest.mark.parametrize("name", ["controller.listener.names", "security.providers"])
def test_an_empty_text_is_not_refused_where_only_the_default_is_taken(name: str) -> None:
    assert BrokerConfig({name: ""}).value(name) == ""


def test_commas_name_no_listener_of_a_controller() -> None:
    assert BrokerConfig({"controller.listener.names": ",,"}).value("controller.listener.names") == ",,"
    message = "controller.listener.names must be empty when not running in KRaft mode: [, X]"
    assert refusal({"controller.listener.names": ",X"}) == message


def test_replica_selector_is_one_that_is_known() -> None:
    name = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert BrokerConfig({"replica.selector.class": name}).replica_selector_class == name
    message = refusal({"replica.selector.class": "com.example.MySelector"})
    assert message == f"replica.selector.class=com.example.MySelector is not supported; {name} is."


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_records_are_kept_for_some_time(name: str) -> None:
    """Otherwise the first sweep would remove everything."""
    assert "log.retention.ms must be unlimited (-1) or, greater than or equal to 1" in refusal({name: "0"})
