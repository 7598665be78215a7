"""The record format of a topic's logs, from `message.format.version` and the broker's settings.

With an `inter.broker.protocol.version` of 3.0 or later it is always format 2. Below, it is the topic's version if that
is not newer than the protocol version, else the broker's `log.message.format.version`. Apache Kafka applies this rule
when a topic's config is changed or the broker is started, but not when the topic is created.

Kafka: LogConfig.MessageFormatVersion, TopicConfigHandler.excludedConfigs, KafkaConfig.logMessageFormatVersion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.metadata_version import LATEST_PRODUCTION, MetadataVersion
from odradek.protocol.records.layout import MAGIC_V2

if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGE_FORMAT_VERSION: Final = "message.format.version"
MESSAGE_FORMAT_DEFAULT: Final = MetadataVersion.IBP_3_0_IV1


def protocol_version(broker_settings: Mapping[str, str]) -> MetadataVersion:
    """`inter.broker.protocol.version`"""
    text = broker_settings.get("inter.broker.protocol.version")
    return LATEST_PRODUCTION if text is None else MetadataVersion.of_text(text)


def message_format_of_broker(broker_settings: Mapping[str, str]) -> str | None:
    """The full name of `log.message.format.version`; None if it is not set or is ignored."""
    text = broker_settings.get("log.message.format.version")
    if text is None or protocol_version(broker_settings).ignores_message_format:
        return None
    return str(MetadataVersion.of_text(text))


def why_broker_setting_is_ignored(broker_settings: Mapping[str, str]) -> str | None:
    """A log line if the broker's setting of an old format is ignored, else None."""
    text, spoken = broker_settings.get("log.message.format.version"), protocol_version(broker_settings)
    if text is None or not spoken.ignores_message_format or MetadataVersion.of_text(text).record_version == MAGIC_V2:
        return None
    return (
        f"Broker configuration log.message.format.version with value {text} is ignored because the inter-broker "
        f"protocol version `{spoken}` is greater or equal than 3.0. This configuration is deprecated and it will be "
        "removed in Apache Kafka 4.0."
    )


def message_format(overrides: Mapping[str, str], broker_settings: Mapping[str, str]) -> MetadataVersion:
    """The effective version of a topic."""
    spoken = protocol_version(broker_settings)
    text = overrides.get(MESSAGE_FORMAT_VERSION)
    if text is not None and not spoken.ignores_message_format:
        wanted = MetadataVersion.of_text(text)
        if wanted <= spoken:
            return wanted
    text = message_format_of_broker(broker_settings)
    return MESSAGE_FORMAT_DEFAULT if text is None else MetadataVersion.of_text(text)


def why_ignored(topic: str, overrides: Mapping[str, str], broker_settings: Mapping[str, str]) -> str | None:
    """A log line if the format in a topic's overrides is ignored, else None."""
    text = overrides.get(MESSAGE_FORMAT_VERSION)
    if text is None:
        return None
    try:
        wanted = MetadataVersion.of_text(text)
    except ValueError:
        return None  # `usable_overrides` ignores and logs it
    spoken = protocol_version(broker_settings)
    beginning = f"Topic configuration {MESSAGE_FORMAT_VERSION} with value `{text}` is ignored for `{topic}` because "
    if spoken.ignores_message_format:
        if wanted.record_version == MAGIC_V2:
            return None
        return (
            f"{beginning}the inter-broker protocol version `{spoken}` is greater or equal than 3.0. This configuration "
            "is deprecated and it will be removed in Apache Kafka 4.0."
        )
    if spoken < wanted:
        return f"{beginning}it is higher than what is allowed by the inter-broker protocol version `{spoken}`."
    return None
