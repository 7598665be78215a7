"""Broker configs that change while the broker runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.dynamic.dynamic_config import DynamicBrokerConfig
from odradek.broker.config.dynamic.dynamic_passwords import Passwords
from odradek.controller.controller import Controller
from odradek.controller.znodes.znodes import DEFAULT_ENTITY
from odradek.storage.cleaning.log_cleaner import LogCleaner
from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.config.config_def import ConfigError
from odradek.storage.config.producer_config import ProducerStateManagerConfig
from odradek.storage.disk.ports import InlineIoPool
from odradek.storage.manager.log_manager import LogManager


class Broker:
    """Records the calls to other parts after a change."""

    def __init__(self, stores: Stores | None = None) -> None:
        self.cleaner = cast("LogCleaner", Cleaner(is_running=False))
        self.is_started = False
        self.recovery_threads_per_data_dir = 1
        self.told: list[Mapping[str, str]] = []
        self.elections = 0
        self.environment = SimpleNamespace(producers=ProducerStateManagerConfig())
        self.config = BrokerConfig({"broker.id": "3"})
        self.dynamic = DynamicBrokerConfig(
            self.config, cast("LogManager", self), Passwords(self.config, InlineIoPool()), lambda: stores
        )

    def update_broker_settings(self, settings: Mapping[str, str]) -> None:
        self.told.append(dict(settings))

    def enable_default_unclean_leader_election(self) -> None:
        self.elections += 1

    def apply(self, entity: str, **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        asyncio.run(self.dynamic.entity_changed(entity, named, cast("Controller", self)))


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_value_of_this_broker_beats_the_default_of_all(broker: Broker) -> None:
    broker.apply(DEFAULT_ENTITY, log_retention_ms="1")
    broker.apply("3", log_retention_ms="2")
    assert broker.config.text("log.retention.ms") == "2"
    broker.apply("3")
    assert broker.config.text("log.retention.ms") == "1"
    assert [settings.get("log.retention.ms") for settings in broker.told] == ["1", "2", "1"]


def test_open_logs_get_new_producer_settings(broker: Broker) -> None:
    producers = broker.environment.producers
    broker.apply(DEFAULT_ENTITY, producer_id_expiration_ms="1", transaction_partition_verification_enable="false")
    assert (producers.producer_id_expiration_ms, producers.transaction_verification) == (1, False)
    broker.apply(DEFAULT_ENTITY)
    assert (producers.producer_id_expiration_ms, producers.transaction_verification) == (86_400_000, True)


def test_logs_are_loaded_with_the_stored_number_of_recovery_threads(broker: Broker) -> None:
    broker.apply(DEFAULT_ENTITY, num_recovery_threads_per_data_dir="4")
    assert broker.recovery_threads_per_data_dir == 4


def test_configs_of_other_brokers_are_theirs(broker: Broker) -> None:
    broker.apply("4", log_retention_ms="1")
    assert broker.told == []


def test_an_invalid_value_is_removed_and_logged(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.apply("3", log_retention_ms="soon")
    assert broker.told == []
    assert "log.retention.ms" in caplog.text


def test_an_equal_value_calls_no_other_part(broker: Broker) -> None:
    broker.apply("3", log_retention_ms="1")
    broker.apply("3", log_retention_ms="1")
    assert len(broker.told) == 1


def test_unclean_election_for_all_is_the_controllers_business(broker: Broker) -> None:
    broker.apply(DEFAULT_ENTITY, unclean_leader_election_enable="true")
    assert broker.elections == 1
    broker.apply(DEFAULT_ENTITY, unclean_leader_election_enable="true", log_retention_ms="1")
    assert broker.elections == 1


@pytest.mark.parametrize(
    ("configs", "per_broker", "reason"),
    [
        ({"broker.id": "4"}, True, "Cannot update these configs dynamically: Set(broker.id)"),
        ({"advertised.listeners": "PLAINTEXT://h:1"}, False, "Cannot update these configs at default cluster level"),
        ({"log.retention.ms": "soon"}, True, "log.retention.ms"),
        ({"log.retention.ms": "soon"}, False, "log.retention.ms"),
    ],
)
def test_change_is_checked_before_it_is_stored(
    broker: Broker, configs: dict[str, str], per_broker: bool, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        broker.dynamic.validate_change(configs, per_broker=per_broker)
    broker.dynamic.validate_change({"log.retention.ms": "5"}, per_broker=per_broker)
    assert broker.told == [], "a check changes nothing"


THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


def test_quotas_are_dynamic_only(broker: Broker) -> None:
    assert broker.config.dynamic_quota(THROTTLE) == 2**63 - 1
    broker.apply(DEFAULT_ENTITY, **{THROTTLE: "7"})
    assert broker.config.dynamic_quota(THROTTLE) == 7
    broker.apply("3", **{THROTTLE: "5"})
    assert broker.config.dynamic_quota(THROTTLE) == 5
    broker.apply("3")
    assert broker.config.dynamic_quota(THROTTLE) == 7
    assert BrokerConfig({"broker.id": "3", THROTTLE: "9"}).dynamic_quota(THROTTLE) == 2**63 - 1


@pytest.mark.parametrize("per_broker", [True, False])
def test_a_quota_is_a_number_from_zero_on(broker: Broker, per_broker: bool) -> None:
    broker.dynamic.validate_change({THROTTLE: "0"}, per_broker=per_broker)
    for text in ("-1", "many"):
        with pytest.raises(ConfigError, match=f"Invalid value {text} for configuration {THROTTLE}"):
            broker.dynamic.validate_change({THROTTLE: text}, per_broker=per_broker)


class Cleaner:
    """Records the new configurations of the cleaner."""

    def __init__(self, *, is_running: bool) -> None:
        self.is_running = is_running
        self.config = CleanerConfig(threads=2)
        self.told: list[CleanerConfig] = []

    def reconfigure(self, config: CleanerConfig) -> None:
        self.told.append(config)


def with_cleaner(broker: Broker, *, is_running: bool) -> Cleaner:
    cleaner = Cleaner(is_running=is_running)
    broker.cleaner = cast("LogCleaner", cleaner)
    return cleaner


def test_cleaner_gets_new_settings(broker: Broker) -> None:
    cleaner = with_cleaner(broker, is_running=True)
    broker.apply("3", log_cleaner_threads="2", log_cleaner_backoff_ms="7", message_max_bytes="5000")
    broker.apply("3", log_cleaner_threads="2", log_cleaner_backoff_ms="7", message_max_bytes="5000", log_roll_ms="9")
    assert [(told.threads, told.backoff_ms, told.max_message_bytes) for told in cleaner.told] == [(2, 7, 5000)]


def test_too_many_threads_at_once_are_refused(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    cleaner = with_cleaner(broker, is_running=True)
    with pytest.raises(ConfigError, match="more than double the current value 2"):
        broker.dynamic.validate_change({"log.cleaner.threads": "5"}, per_broker=False)
    broker.apply("3", log_cleaner_threads="5")
    assert cleaner.told == []
    assert "more than double" in caplog.text


@pytest.mark.parametrize("per_broker", [True, False])
def test_a_broker_without_a_cleaner_refuses_what_its_other_parts_do_not_support(
    broker: Broker, per_broker: bool
) -> None:
    with_cleaner(broker, is_running=False)
    broker.dynamic.validate_change({"num.io.threads": "2"}, per_broker=per_broker)
    broker.is_started = True
    with pytest.raises(ConfigError, match="at least half the current value 8"):
        broker.dynamic.validate_change({"num.io.threads": "2"}, per_broker=per_broker)


def test_values_stored_before_the_start_apply(broker: Broker) -> None:
    cleaner = with_cleaner(broker, is_running=False)
    broker.apply("3", log_cleaner_threads="5")
    assert [told.threads for told in cleaner.told] == [5]


def test_a_value_invalid_for_logs_is_refused_and_removed(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """log.flush.interval.ms may be negative in Kafka's table; flush.ms, whose default it is, may not."""
    for per_broker in (True, False):
        with pytest.raises(ConfigError, match=r"Value must be at least 0 \(from log.flush.interval.ms\)"):
            broker.dynamic.validate_change({"log.flush.interval.ms": "-1"}, per_broker=per_broker)
    broker.apply(DEFAULT_ENTITY, log_flush_interval_ms="-1", log_retention_ms="7")
    assert broker.config.text("log.flush.interval.ms") is None
    assert broker.config.text("log.retention.ms") == "7", "the others are in force"
    assert "The dynamic config log.flush.interval.ms is not applied" in caplog.text
    with pytest.raises(ConfigError, match=r"flush\.ms"):
        BrokerConfig({"log.flush.interval.ms": "-1"})
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        BrokerConfig({"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"})


INVALID = {"log.flush.interval.ms": "-1"}
"""Refused with any other config."""


def in_both_orders(configs: dict[str, str]) -> list[dict[str, str]]:
    return [configs, dict(reversed(configs.items()))]


@pytest.mark.parametrize(
    "configs", in_both_orders({"log.retention.ms": "7", "num.io.threads": "24", "log.roll.ms": "5", **INVALID})
)
def test_an_invalid_config_takes_no_other_with_it(broker: Broker, configs: dict[str, str]) -> None:
    """Not even for a moment: 24 threads that became 8 would be refused, and 7 ms of retention would become a week."""
    broker.apply("3", log_retention_ms="7", num_io_threads="24")
    broker.is_started = True
    broker.apply("3", **configs)
    assert dict(broker.config.dynamic_values) == {name: text for name, text in configs.items() if name not in INVALID}
    assert [settings.get("log.retention.ms") for settings in broker.told] == ["7", "7"]


@pytest.mark.parametrize(
    "configs",
    in_both_orders(
        {
            "listeners": "PLAINTEXT://h:1,B://h:2",
            "advertised.listeners": "PLAINTEXT://h:1,B://h:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            "log.cleaner.min.compaction.lag.ms": "20",
            "log.cleaner.max.compaction.lag.ms": "30",
            **INVALID,
        }
    ),
)
def test_configs_that_depend_on_one_another_are_applied_in_any_order(broker: Broker, configs: dict[str, str]) -> None:
    broker.apply(
        "3",
        listeners="PLAINTEXT://h:1,A://h:2",
        advertised_listeners="PLAINTEXT://h:1,A://h:2",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,A:PLAINTEXT",
        log_cleaner_max_compaction_lag_ms="10",
    )
    broker.is_started = True
    broker.apply("3", **configs)
    assert dict(broker.config.dynamic_values) == {name: text for name, text in configs.items() if name not in INVALID}


def test_a_config_that_cannot_be_applied_keeps_its_value_until_it_can(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.apply("3", num_io_threads="24", log_flush_interval_ms="9")
    broker.is_started = True
    broker.apply("3", log_flush_interval_ms="-1")
    assert broker.config.dynamic_values == {"num.io.threads": "24", "log.flush.interval.ms": "9"}
    assert "The dynamic config num.io.threads is not applied" in caplog.text, "it is not removed"
    assert "The dynamic config log.flush.interval.ms is not applied" in caplog.text
    broker.apply(DEFAULT_ENTITY, num_io_threads="16")
    assert broker.config.dynamic_values == {"log.flush.interval.ms": "9"}
    assert broker.config.text("num.io.threads") == "16"


class Stores:
    """The stores of a listener x, which can be used or not, and those of others, which can."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.in_use: dict[str, str] = {}

    async def validate(self, candidate: BrokerConfig) -> None: ...

    async def reload_files(self, candidate: BrokerConfig) -> None: ...

    async def apply(self, candidate: BrokerConfig) -> set[str]:
        self.in_use |= {
            name: text
            for name, text in candidate.dynamic_values.items()
            if name.split(".")[2] not in self.refused and "ssl.keystore" in name
        }
        return self.refused


def test_stores_that_cannot_be_used_are_tried_again_when_they_are_set_again() -> None:
    """An operator mends the file, and sends the same configs."""
    stores = Stores()
    broker = Broker(stores)
    path, kind = "listener.name.x.ssl.keystore.location", "listener.name.x.ssl.keystore.type"
    other = "listener.name.y.ssl.keystore.location"
    broker.apply("3", **{path: "old", kind: "PEM", other: "old"})
    stores.refused = {"x"}
    new = {path: "new", kind: "PKCS12", other: "new", "log.retention.ms": "7"}
    broker.apply("3", **new)
    assert broker.config.dynamic_values == new | {path: "old", kind: "PEM"}
    assert stores.in_use == {path: "old", kind: "PEM", other: "new"}
    stores.refused = set()
    broker.apply("3", **new)
    assert broker.config.dynamic_values == new
    assert stores.in_use == {name: new[name] for name in (path, kind, other)}


class StoresOfOpenListeners(Stores):
    """An open listener needs its stores, as with TLS."""

    async def apply(self, candidate: BrokerConfig) -> set[str]:
        names = {end_point.listener_name.lower() for end_point in candidate.listeners.bound} - {"plaintext"}
        return {name for name in names if f"listener.name.{name}.ssl.keystore.location" not in candidate.dynamic_values}


@pytest.mark.parametrize("is_closed", [True, False])
def test_the_stores_of_a_listener_go_with_the_listener(is_closed: bool) -> None:
    broker = Broker(StoresOfOpenListeners())
    both = "PLAINTEXT://h:1,A://h:2"
    left = "PLAINTEXT://h:1" if is_closed else both
    store = {"listener.name.a.ssl.keystore.location": "old"}
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:PLAINTEXT"}
    broker.apply("3", **{"listeners": both, "advertised.listeners": both} | protocols | store)
    broker.is_started = True
    now = {"listeners": left, "advertised.listeners": left} | protocols
    broker.apply("3", **now)
    assert broker.config.dynamic_values == now | ({} if is_closed else store)


def test_invalid_names_in_the_metadata_are_removed_and_logged(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """It can be written with a ZooKeeper shell."""
    stored = {"num.partitions": "9", "ssl.keystore.password": "secret", "ssl.client.auth": "often", "log.roll.ms": "5"}
    assert broker.dynamic.usable(stored, per_broker=True) == {"log.roll.ms": "5"}
    assert broker.dynamic.usable({"advertised.listeners": "PLAINTEXT://h:1", "a.b": "c"}, per_broker=False) == {
        "a.b": "c"
    }
    for name in ("num.partitions", "ssl.keystore.password", "ssl.client.auth", "advertised.listeners"):
        assert name in caplog.text
    assert "secret" not in caplog.text


def test_passwords_are_of_one_broker(broker: Broker) -> None:
    with pytest.raises(ConfigError, match="Password config can be defined only at broker level"):
        asyncio.run(broker.dynamic.to_persistent({"custom.ssl.key.password": "x"}, per_broker=False))
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        asyncio.run(broker.dynamic.to_persistent({"listener.name.x.ssl.key.password": "x"}, per_broker=True))
    assert asyncio.run(broker.dynamic.to_persistent({"log.roll.ms": "1"}, per_broker=False)) == {"log.roll.ms": "1"}


def test_configs_that_are_applied_already_are_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    broker.apply("<default>", log_cleaner_threads="2")

    def resolve(*arguments: object, **configs: object) -> None:
        raise AssertionError("all keys are parsed again")

    monkeypatch.setattr(broker.config, "with_dynamic", resolve)
    broker.apply("<default>", log_cleaner_threads="2")
    with pytest.raises(AssertionError, match="parsed again"):
        broker.apply("<default>", log_cleaner_threads="1")
