"""Defaults are Kafka's."""

from __future__ import annotations

from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.coordinator.transaction.config import TransactionConfig


def test_defaults_are_those_of_the_broker() -> None:
    config = TransactionConfig()
    for name in TransactionConfig._fields:
        assert getattr(config, name) == int(BROKER_CONFIG_KEYS[name.replace("_", ".")].default), name
