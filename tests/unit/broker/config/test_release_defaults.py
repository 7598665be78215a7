from __future__ import annotations

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.controller.model.config_codes import ConfigSource
from odradek.protocol.api import API, ApiKey
from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.older_releases import RELEASES
from odradek.storage.config.config_def import ConfigError


def config_of(release: str, **settings: str) -> BrokerConfig:
    return BrokerConfig(
        {"odradek.as.version": release} | {key.replace("_", "."): text for key, text in settings.items()}
    )


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_can_be_served_and_speaks_its_own_inter_broker_protocol(release: str) -> None:
    config = config_of(release)
    assert config.metadata_version is MetadataVersion.of_text(release)
    assert config.source("inter.broker.protocol.version") is ConfigSource.STATIC_BROKER_CONFIG


def test_without_a_release_all_is_served() -> None:
    assert BrokerConfig({}).apis is API
    assert config_of("2.3").apis[ApiKey.METADATA].max_version == 8


@pytest.mark.parametrize(
    ("key", "last_with_other_default", "older", "newer"),
    [
        ("transaction.partition.verification.enable", "3.5", False, True),
        ("log.message.format.version", "2.8", "2.8", "3.0-IV1"),
        ("message.max.bytes", "2.4", 1000012, 1048588),
        ("replica.lag.time.max.ms", "2.4", 10000, 30000),
        ("group.max.session.timeout.ms", "2.2", 300000, 1800000),
        ("offsets.retention.minutes", "1.1", 1440, 10080),
        ("delete.topic.enable", "0.11.0", False, True),
        ("unclean.leader.election.enable", "0.10.2", True, False),
    ],
)
def test_defaults_that_changed(key: str, last_with_other_default: str, older: object, newer: object) -> None:
    next_release = RELEASES[RELEASES.index(last_with_other_default) - 1]
    assert config_of(last_with_other_default).value(key) == older
    assert config_of(next_release).value(key) == newer


def test_what_is_set_is_not_replaced_by_a_default() -> None:
    config = config_of(
        "0.11", message_max_bytes="5", inter_broker_protocol_version="0.10.2", log_message_format_version="0.10.2"
    )
    assert config.message_max_bytes == 5
    assert config.metadata_version is MetadataVersion.IBP_0_10_2_IV0


def test_a_release_does_not_know_a_newer_inter_broker_protocol() -> None:
    config_of("2.8", inter_broker_protocol_version="2.8-IV1")
    with pytest.raises(ConfigError, match=r"inter\.broker\.protocol\.version 3\.0-IV0 is newer than .*2\.8\.1"):
        config_of("2.8.1", inter_broker_protocol_version="3.0-IV0")


@pytest.mark.parametrize("text", ["4.0", "0.9", "old"])
def test_an_unknown_release_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"odradek\.as\.version: .* is not a release of Apache Kafka"):
        config_of(text)


def test_brokers_of_a_cluster_cannot_be_older_than_what_they_send_to_each_other() -> None:
    config_of("2.7", zookeeper_connect="localhost:2181")
    with pytest.raises(ConfigError, match=r"is not supported with zookeeper\.connect"):
        config_of("2.6", zookeeper_connect="localhost:2181")
