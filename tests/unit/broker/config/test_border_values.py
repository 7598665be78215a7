"""Border values of every numeric key: refused, or a broker with them works."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.config_keys import BROKER_CONFIG_KEYS
from odradek.protocol.api import ApiKey
from odradek.storage.config.config_def import ConfigError, ConfigKey, ConfigType
from odradek.storage.config.log_config import TOPIC_CONFIGS
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker, no_bugs_logged
from tests.support.wire.requests import build

NUMBERS = (ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.DOUBLE)
BORDERS = ("-9223372036854775808", "-2147483648", "-2", "-1", "0", "1", "2147483647", "9223372036854775807", "NaN")
DAY_MS = 86_400_000

LEFT_OUT = {
    "broker.id": "who the broker is",
    "node.id": "who the broker is",
    "reserved.broker.max.id": "who the broker is",
    "default.replication.factor": "a topic takes as many brokers",
    "log.cleaner.threads": "each needs its part of the buffer, and is a process",
    "offsets.topic.compression.codec": "what is no codec is refused, as by Apache Kafka, without the name of the key",
    "request.timeout.ms": "no request to another broker, or to oneself, is answered within 0 ms",
}


def taken(keys: list[ConfigKey], value: str) -> dict[str, str]:
    """The keys that accept the value while the others have their defaults."""
    found = {}
    for key in keys:
        try:
            key.parse(value)
        except ConfigError:
            continue
        found[key.name] = value
    return found


def taken_together(settings: dict[str, str]) -> dict[str, str]:
    """The settings without those that contradict each other; the error messages name these."""
    while refusal := refused(settings):
        named = [name for name in settings if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", refusal)]
        assert named, f"refused without a name: {refusal}"
        settings = {name: value for name, value in settings.items() if name not in named}
    return settings


def refused(settings: dict[str, str]) -> str | None:
    try:
        BrokerConfig(settings)
    except ConfigError as error:
        return str(error)
    return None


def work(broker: InProcessBroker, configs: Mapping[str, str]) -> None:
    """Create topics, and let each periodic task run."""
    for name, policy in (("plain", "delete"), ("compacted", "compact")):
        given = [{"name": key, "value": value} for key, value in {**configs, "cleanup.policy": policy}.items()]
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": given}
        waiting = broker.send(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=DAY_MS), 7)
        while not waiting.is_over:  # the tree's fsyncs take their time on a busy machine; pytest sets the limit
            broker.run(asyncio.sleep(0.001))
        assert waiting.answer is not None
        assert [topic.error_code for topic in waiting.answer.topics] == [0], waiting.answer  # type: ignore[attr-defined]
    broker.advance(DAY_MS)
    broker.advance(DAY_MS)


@pytest.mark.parametrize("value", BORDERS)
def test_a_broker_works_with_every_border_value_it_takes(tmp_path: Path, value: str) -> None:
    keys: list[ConfigKey] = [
        key for key in BROKER_CONFIG_KEYS.values() if key.type in NUMBERS and key.name not in LEFT_OUT
    ]
    settings = taken_together(taken(keys, value))
    assert settings
    with no_bugs_logged(), in_process_broker(tmp_path, settings) as broker:
        work(broker, {})


@pytest.mark.parametrize("value", BORDERS)
def test_a_topic_works_with_every_border_value_it_takes(tmp_path: Path, value: str) -> None:
    configs = taken([key for key in TOPIC_CONFIGS if key.type in NUMBERS], value)
    if value == "9223372036854775807":
        configs["max.compaction.lag.ms"] = value
    with no_bugs_logged(), in_process_broker(tmp_path) as broker:
        work(broker, configs)
