"""The configs of topics, by broker setting and override."""

from __future__ import annotations

import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.config.topic_configs import TopicConfigs


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


def test_what_is_set_during_a_block_is_noted_there_even_if_it_changes_nothing() -> None:
    configs = TopicConfigs({})
    with configs.updated_meanwhile() as outer:
        configs.override("t", {})
        with configs.updated_meanwhile() as inner:
            configs.override("u", {"retention.ms": "2"})
        configs.override("v", {})
    configs.override("w", {})
    assert (outer, inner) == ({"t", "u", "v"}, {"u"})


def test_the_default_has_the_broker_settings_alone() -> None:
    configs = TopicConfigs({"log.segment.delete.delay.ms": "1"})
    configs.override("t", {"file.delete.delay.ms": "2"})
    assert configs.default.file_delete_delay_ms == 1
    configs.set_broker_settings({"log.segment.delete.delay.ms": "3"})
    assert configs.default.file_delete_delay_ms == 3


def test_overrides_go_with_the_last_log() -> None:
    configs = TopicConfigs({})
    configs.override("t", {"retention.ms": "2"})
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    for topic_partition in (first, second, second):
        configs.log_added(topic_partition)
    configs.log_removed(second)
    assert set(configs.partitions_with_logs("t")) == {first, second}
    configs.log_removed(first)
    assert set(configs.partitions_with_logs("t")) == {second}
    assert configs.of("t").retention_ms == 2
    configs.log_removed(second)
    assert configs.of("t").retention_ms != 2
    assert not configs.partitions_with_logs("t")


def test_overrides_without_logs_are_forgotten() -> None:
    configs = TopicConfigs({})
    for topic in ("here", "elsewhere", "later"):
        configs.override(topic, {"retention.ms": "2"})
    configs.log_added(TopicPartition("here", 0))
    configs.forget_without_logs()
    configs.override("later", {"retention.ms": "3"})
    configs.log_added(TopicPartition("later", 0))
    configs.forget_without_logs()
    kept = {topic: configs.of(topic).overrides for topic in ("here", "elsewhere", "later")}
    assert kept == {"here": {"retention.ms": "2"}, "elsewhere": {}, "later": {"retention.ms": "3"}}


def test_what_changes_nothing_is_said_to() -> None:
    configs = TopicConfigs({"log.retention.ms": "1", "num.io.threads": "8"})
    assert not configs.override("t", {})
    assert configs.override("t", {"retention.ms": "2"})
    assert not configs.override("t", {"retention.ms": "2"})
    assert not configs.set_broker_settings({"log.retention.ms": "1", "num.io.threads": "4"})
    assert configs.set_broker_settings({})


def test_values_that_cannot_be_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    configs = TopicConfigs({})
    configs.override("t", {"flush.ms": "-1", "retention.ms": "2", "cleanup.policy": "burn", "no.such.key": "x"})
    assert (configs.of("t").flush_ms, configs.of("t").retention_ms) == (2**63 - 1, 2)
    assert configs.of("t").overrides == {"retention.ms": "2", "no.such.key": "x"}
    assert "Invalid value -1 for configuration flush.ms" in caplog.text
    assert "cleanup.policy" in caplog.text
