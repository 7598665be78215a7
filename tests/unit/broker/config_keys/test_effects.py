"""Of every key of the table it is true what is said of it: it acts, is refused by name, or warns by name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config_keys import BROKER_CONFIG_KEYS, BrokerConfigKey
from odradek.broker.config_keys.effects import REFUSED, WITHOUT_EFFECT, effect
from odradek.storage.config import TOPIC_CONFIG_SYNONYMS
from odradek.storage.config_def import ConfigError, ConfigType, ValidList, ValidString

REPOSITORY = Path(__file__).parents[4]
TABLES = ("broker/config_keys/", "broker/config_values.py", "storage/topic_config_table.py")
CHECKS = ("broker/reconfiguration.py", "broker/config_checks.py")
"""They read keys to refuse values, which is no effect."""
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
    paths = [
        path.relative_to(REPOSITORY).as_posix() for folder in folders for path in (REPOSITORY / folder).rglob("*.py")
    ]
    left_out = TABLES if with_checks else TABLES + CHECKS
    return "\n".join((REPOSITORY / path).read_text() for path in paths if not path.startswith(left_out))


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
    assert is_read(name, with_checks=name in READ_BY_CHECKS), f"nobody reads {name}: broker/config_keys/effects.py"


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_a_key_without_effect_is_read_by_nobody_and_warns(name: str) -> None:
    assert name in BROKER_CONFIG_KEYS
    assert name not in REFUSED
    assert not is_read(name) or name in OF_TOPICS, (
        f"{name} is read: broker/config_keys/effects.py says it has no effect"
    )
    key = BROKER_CONFIG_KEYS[name]
    config = BrokerConfig({name: another(key)})
    assert config.keys_without_effect == {name: WITHOUT_EFFECT[name]}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_key_that_is_refused_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(name)):
        BrokerConfig({name: another(BROKER_CONFIG_KEYS[name])})


def another(key: BrokerConfigKey) -> str:
    """A value that is not the default."""
    match key.type:
        case ConfigType.BOOLEAN:
            return "false" if key.default_value() else "true"
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
            default = key.default_value()
            number = default if isinstance(default, int) else 1000
            return next(text for text in (str(number + 1), str(number - 1), "5") if is_taken(key, text))
        case ConfigType.DOUBLE:
            return next(
                text for text in ("0.5", "0.25") if is_taken(key, text) and key.parse(text) != key.default_value()
            )
    words: tuple[str, ...] = ("org.example.Other",)
    if isinstance(key.validator, ValidString | ValidList):
        words = key.validator.allowed
    candidates = (*words, "DOWNGRADE", "ERROR", "1@h:2", "h:2")
    return next(
        text for text in candidates if text != key.default and (key.type is ConfigType.CLASS or is_taken(key, text))
    )


def is_taken(key: BrokerConfigKey, text: str) -> bool:
    try:
        key.parse(text)
    except ConfigError:
        return False
    return True
