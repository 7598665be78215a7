"""The table of topic configs is complete, and each default is valid."""

from __future__ import annotations

import pytest

from odradek.storage.config.config_def import ConfigKey
from odradek.storage.config.topic_config_table import TOPIC_CONFIG_KEYS

KAFKA_3_9 = {
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
}


def test_the_names_are_those_of_kafka_3_9() -> None:
    assert {key.name for key in TOPIC_CONFIG_KEYS} == KAFKA_3_9
    assert len(TOPIC_CONFIG_KEYS) == len(KAFKA_3_9)


@pytest.mark.parametrize("key", TOPIC_CONFIG_KEYS, ids=lambda key: key.name)
def test_each_default_is_valid_and_each_key_explained(key: ConfigKey) -> None:
    assert isinstance(key.default, str)
    key.parse(key.default)
    assert key.doc.endswith(".")
