from __future__ import annotations

import pytest

from odradek.testing.node.settings import TEST_DEFAULTS, broker_settings


def test_keywords_are_keys_with_underscores_and_come_before_the_mapping() -> None:
    settings = broker_settings({"log.retention.ms": 1, "auto.create.topics.enable": False}, {"log_retention_ms": 2})
    assert settings == {**TEST_DEFAULTS, "log.retention.ms": "2", "auto.create.topics.enable": "false"}


def test_the_release_whose_apis_are_served_has_a_short_name() -> None:
    assert broker_settings({}, {"as_version": "2.8"})["odradek.as.version"] == "2.8"


def test_lists_are_joined_and_none_takes_a_default_of_the_kit_away() -> None:
    settings = broker_settings({"super.users": ["User:a", "User:b"], "offsets.topic.num.partitions": None}, {})
    assert settings["super.users"] == "User:a,User:b"
    assert "offsets.topic.num.partitions" not in settings


def test_with_a_zookeeper_the_defaults_are_those_of_a_cluster() -> None:
    assert broker_settings({"zookeeper.connect": "127.0.0.1:2181"}, {}) == {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": "127.0.0.1:2181",
    }


def test_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"log\.retention\.ms"):
        broker_settings({}, {"log_retention_ms": object()})  # type: ignore[dict-item]


def test_as_version_is_a_short_name() -> None:
    assert broker_settings(None, {"as_version": 2.8})["odradek.as.version"] == "2.8"
