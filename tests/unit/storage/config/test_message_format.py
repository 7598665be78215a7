"""The record format of a topic."""

from __future__ import annotations

import logging

import pytest

from odradek.storage.config.log_config import LogConfig, broker_default_text
from odradek.storage.config.message_format import why_broker_setting_is_ignored, why_ignored
from odradek.storage.config.topic_configs import TopicConfigs

OLD = {"message.format.version": "0.10.2"}


@pytest.mark.parametrize(
    ("broker", "topic", "version", "magic"),
    [
        ({}, {}, "3.0-IV1", 2),
        ({}, OLD, "3.0-IV1", 2),
        ({"log.message.format.version": "0.9.0"}, {}, "3.0-IV1", 2),
        ({"inter.broker.protocol.version": "2.8"}, {}, "3.0-IV1", 2),
        ({"inter.broker.protocol.version": "2.8"}, OLD, "0.10.2-IV0", 1),
        ({"inter.broker.protocol.version": "2.8"}, {"message.format.version": "0.9.0.1"}, "0.9.0", 0),
        ({"inter.broker.protocol.version": "2.8", "log.message.format.version": "0.9.0"}, OLD, "0.10.2-IV0", 1),
        ({"inter.broker.protocol.version": "2.8", "log.message.format.version": "0.10.0"}, {}, "0.10.0-IV1", 1),
        (
            {"inter.broker.protocol.version": "0.10.2", "log.message.format.version": "0.10.0"},
            {"message.format.version": "0.11.0"},
            "0.10.0-IV1",
            1,
        ),
    ],
)
def test_format_of_a_topic(broker: dict[str, str], topic: dict[str, str], version: str, magic: int) -> None:
    config = LogConfig.from_props(broker, topic)
    assert (str(config.message_format_version), config.record_version) == (version, magic)


def test_the_broker_setting_is_a_default_only_where_it_is_honoured() -> None:
    settings = {"log.message.format.version": "2.8"}
    assert broker_default_text("message.format.version", settings) is None
    settings["inter.broker.protocol.version"] = "2.8"
    assert broker_default_text("message.format.version", settings) == "2.8-IV1"


def test_an_ignored_format_of_a_topic_is_logged() -> None:
    assert why_ignored("t", {}, {}) is None
    assert why_ignored("t", {"message.format.version": "0.11.0"}, {}) is None  # format 2 is what it gets
    assert why_ignored("t", OLD, {"inter.broker.protocol.version": "2.8"}) is None
    assert why_ignored("t", {"message.format.version": "nonsense"}, {}) is None
    assert why_ignored("t", OLD, {}) == (
        "Topic configuration message.format.version with value `0.10.2` is ignored for `t` because the inter-broker "
        "protocol version `3.9-IV0` is greater or equal than 3.0. This configuration is deprecated and it will be "
        "removed in Apache Kafka 4.0."
    )
    newer = why_ignored("t", {"message.format.version": "2.8"}, {"inter.broker.protocol.version": "2.7"})
    assert newer is not None
    assert newer.endswith("is higher than what is allowed by the inter-broker protocol version `2.7-IV2`.")


def test_an_ignored_format_of_the_broker_is_logged() -> None:
    settings = {"log.message.format.version": "0.10.2"}
    why = why_broker_setting_is_ignored(settings)
    assert why is not None
    assert why.startswith("Broker configuration log.message.format.version with value 0.10.2 is ignored because")
    assert why_broker_setting_is_ignored({**settings, "inter.broker.protocol.version": "2.8"}) is None
    assert why_broker_setting_is_ignored({"log.message.format.version": "2.8"}) is None
    assert why_broker_setting_is_ignored({}) is None


def test_the_reason_is_logged_when_the_config_comes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        TopicConfigs({}).override("t", OLD)
    assert "`0.10.2` is ignored for `t`" in caplog.text


def test_zstd_is_allowed_since_2_1() -> None:
    assert LogConfig.from_props({"inter.broker.protocol.version": "2.1"}, {}).allows_zstd
    assert not LogConfig.from_props({"inter.broker.protocol.version": "2.0"}, {}).allows_zstd
