"""Every key of the table has the effect that `effects.py` gives it: it acts, is refused by name, or warns by name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from odradek.broker.config import config_checks, config_keys, config_values
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS, BrokerConfigKey
from odradek.broker.config.dynamic import reconfiguration
from odradek.broker.config.keys import key
from odradek.broker.config.keys.groups import ASSIGNORS
from odradek.broker.config.keys.not_served.effects import REFUSED, REFUSED_VALUES, WITHOUT_EFFECT, effect
from odradek.broker.config.keys.replication import RACK_AWARE_REPLICA_SELECTOR
from odradek.broker.config.zookeeper_config import zookeeper_settings
from odradek.broker.machine.startup_error import StartupError
from odradek.storage.config import topic_config_table
from odradek.storage.config.config_def import ConfigError, ConfigType, ValidList, ValidString
from odradek.storage.config.log_config import TOPIC_CONFIG_SYNONYMS

REPOSITORY = Path(__file__).parents[6]
PINNED = REPOSITORY / "tests" / "golden" / "config_effects.txt"
"""A line for each key: its name, and `acts`, `warns` or `refused`. It changes only with a decision about a key."""


def source_of(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__).resolve()


TABLES = (source_of(key).parent, source_of(config_keys), source_of(config_values), source_of(topic_config_table))
CHECKS = (source_of(reconfiguration), source_of(config_checks))
"""Modules that read keys only to refuse values, which does not count as an effect."""
IN_PIECES = ("zookeeper.ssl.keystore", "zookeeper.ssl.truststore")
"""Read as f"{prefix}.location" and f"{prefix}.type"."""
OF_TOPICS = frozenset(synonym.name for synonyms in TOPIC_CONFIG_SYNONYMS.values() for synonym in synonyms)
"""Defaults of topic configs; those of LogConfig are held by its own test."""
READ_BY_CHECKS = {
    "broker.id.generation.enable": "without it a broker has to have an id",
    "group.coordinator.rebalance.protocols": "classic is to be among them, and nothing else can be",
}


@cache
def sources(*, with_checks: bool) -> str:
    folders = ("broker", "controller", "coordinator", "storage")
    paths = [path for folder in folders for path in (REPOSITORY / folder).rglob("*.py")]
    left_out = TABLES if with_checks else TABLES + CHECKS
    return "\n".join(path.read_text() for path in paths if not any(map(path.is_relative_to, left_out)))


def is_read(name: str, *, with_checks: bool = False) -> bool:
    text = sources(with_checks=with_checks)
    attribute, prefix = name.replace(".", "_"), name.rpartition(".")[0]
    return (
        re.search(rf'"{re.escape(name)}"|\.{re.escape(attribute)}\b', text) is not None
        or (prefix in IN_PIECES and f'"{prefix}"' in text and f"}}.{name.rpartition('.')[2]}" in text)
        or name in OF_TOPICS
    )


NAMES = sorted(BROKER_CONFIG_KEYS)


@pytest.mark.parametrize("name", [name for name in NAMES if effect(name) == "acts"])
def test_a_key_that_acts_is_read(name: str) -> None:
    assert is_read(name, with_checks=name in READ_BY_CHECKS), (
        f"nobody reads {name}: broker/config/keys/not_served/effects.py"
    )


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_a_key_without_effect_is_not_read_and_warns(name: str) -> None:
    assert name in BROKER_CONFIG_KEYS
    assert name not in REFUSED
    assert not is_read(name) or name in OF_TOPICS, (
        f"{name} is read: broker/config/keys/not_served/effects.py says it has no effect"
    )
    [config] = changed(BROKER_CONFIG_KEYS[name])
    assert config.keys_without_effect == {name: WITHOUT_EFFECT[name]}


@pytest.mark.parametrize("name", sorted(REFUSED_VALUES))
def test_a_key_with_a_refused_value_is_read_and_refuses_it(name: str) -> None:
    assert is_read(name)
    assert changed(BROKER_CONFIG_KEYS[name]) == []


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_key_that_is_refused_is_refused_by_name(name: str) -> None:
    for text in candidates(BROKER_CONFIG_KEYS[name]):
        with pytest.raises(ConfigError, match=re.escape(name)):
            BrokerConfig({name: text})


def test_each_key_has_the_effect_in_the_golden_file() -> None:
    """Without the table: finds a key that is missing in it by mistake."""
    pinned = dict(line.split() for line in PINNED.read_text().splitlines())
    assert {name: what_it_does(key) for name, key in sorted(BROKER_CONFIG_KEYS.items())} == pinned


def what_it_does(key: BrokerConfigKey) -> str:
    """A key is refused when only its default is accepted."""
    configs = changed(key)
    if not configs:
        return "refused"
    return "warns" if key.name in configs[0].keys_without_effect else "acts"


TEXTS = ("org.example.Other", "PLAINTEXT", "PLAINTEXT://h:1", "PLAINTEXT:PLAINTEXT", "h:2", "1@h:2", "3.0", "1000")
"""One example of each syntax that a text may need."""
SPECIAL = {
    "group.coordinator.rebalance.protocols": "classic,share",
    "replica.selector.class": RACK_AWARE_REPLICA_SELECTOR,
    "control.plane.listener.name": "CONTROL",
    "group.consumer.assignors": ASSIGNORS[1],
}
WITH_IT = {
    "control.plane.listener.name": {
        "listeners": "PLAINTEXT://h:1,CONTROL://h:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
    },
    "zookeeper.ssl.ocsp.enable": {"zookeeper.connect": "z:1", "zookeeper.ssl.client.enable": "true"},
}
"""Other settings that a key needs to be accepted."""


def changed(key: BrokerConfigKey) -> list[BrokerConfig]:
    """The configuration with the first accepted value of the key that is not its default, if there is one."""
    for text in candidates(key):
        try:
            config = BrokerConfig({**WITH_IT.get(key.name, {}), key.name: text})
            if config.zookeeper_connect is not None and key.name in WITH_IT:
                zookeeper_settings(config, None)
        except (ConfigError, StartupError):
            continue
        if config.value(key.name) != key.default_value():
            return [config]
    return []


def candidates(key: BrokerConfigKey) -> tuple[str, ...]:
    """Values that are not the default."""
    default = key.default_value()
    match key.type:
        case ConfigType.BOOLEAN:
            return ("false" if default else "true",)
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
            number = default if isinstance(default, int) else 1000
            return str(number + 1), str(number - 1), "5"
        case ConfigType.DOUBLE:
            return "0.5", "0.25"
    if key.name in SPECIAL:
        return (SPECIAL[key.name],)
    words = key.validator.allowed if isinstance(key.validator, ValidString | ValidList) else ()
    return tuple(text for text in (*words, "DOWNGRADE", "ERROR", *TEXTS) if text != key.default)
