"""The parts of a topic's config that validation uses."""

from __future__ import annotations

import pytest

from odradek.protocol.records.compression import CompressionType
from odradek.storage.config.log_config import LogConfig
from odradek.storage.validation.validation_rules import ValidationRules


def rules(broker: dict[str, str], topic: dict[str, str], *, validate_all: bool = False) -> ValidationRules:
    return ValidationRules.of_config(LogConfig.from_props(broker, topic), "t-0", validate_all=validate_all)


@pytest.mark.parametrize(
    ("topic", "walks"),
    [
        ({}, False),
        ({"cleanup.policy": "compact"}, True),
        ({"message.timestamp.before.max.ms": "5"}, True),
        ({"message.timestamp.after.max.ms": "5"}, True),
        ({"message.timestamp.after.max.ms": "5", "message.timestamp.type": "LogAppendTime"}, False),
    ],
)
def test_records_are_walked_where_something_depends_on_them(topic: dict[str, str], walks: bool) -> None:
    assert rules({}, topic).walk_records is walks
    assert rules({}, topic, validate_all=True).walk_records


def test_the_codec_comes_with_its_level() -> None:
    kept = rules({}, {"compression.zstd.level": "7"})
    assert (kept.target_codec, kept.level) == (None, None)
    packed = rules({}, {"compression.type": "zstd", "compression.zstd.level": "7"})
    assert (packed.target_codec, packed.level) == (CompressionType.ZSTD, 7)


def test_the_format_and_zstd_follow_the_inter_broker_protocol() -> None:
    topic = {"message.format.version": "0.10.2"}
    assert (rules({}, topic).record_version, rules({}, topic).allows_zstd) == (2, True)
    old = rules({"inter.broker.protocol.version": "2.0"}, topic)
    assert (old.record_version, old.allows_zstd) == (1, False)
