"""The configs of topics, by broker setting and override."""

from __future__ import annotations

from odradek.storage.topic_configs import TopicConfigs


def test_overrides_beat_broker_settings() -> None:
    configs = TopicConfigs({"log.retention.ms": "1"})
    assert configs.of("t").retention_ms == 1
    configs.override("t", {"retention.ms": "2"})
    assert (configs.of("t").retention_ms, configs.of("u").retention_ms) == (2, 1)
    configs.set_broker_settings({"log.retention.ms": "3"})
    assert (configs.of("t").retention_ms, configs.of("u").retention_ms) == (2, 3)
    configs.override("t", {})
    assert configs.of("t").retention_ms == 3
    assert configs.of("t") is configs.of("t")


def test_overrides_go_with_the_last_log() -> None:
    configs = TopicConfigs({})
    configs.override("t", {"retention.ms": "2"})
    configs.log_added("t")
    configs.log_added("t")
    configs.log_removed("t")
    assert configs.of("t").retention_ms == 2
    configs.log_removed("t")
    assert configs.of("t").retention_ms != 2
