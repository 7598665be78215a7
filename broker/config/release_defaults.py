"""The defaults of older releases of Apache Kafka that differ from those of 3.9, for `odradek.as.version`.

Only keys that a client can feel: limits of what it sends, how long offsets are kept, formats of records.

Kafka: KafkaConfig.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.older_releases import release_of

_BEFORE: Final = (
    (MetadataVersion.IBP_3_6_IV0, "transaction.partition.verification.enable", "false"),
    (MetadataVersion.IBP_2_5_IV0, "message.max.bytes", "1000012"),
    (MetadataVersion.IBP_2_5_IV0, "replica.lag.time.max.ms", "10000"),
    (MetadataVersion.IBP_2_3_IV0, "group.max.session.timeout.ms", "300000"),
    (MetadataVersion.IBP_2_0_IV0, "offsets.retention.minutes", "1440"),
    (MetadataVersion.IBP_1_0_IV0, "delete.topic.enable", "false"),
    (MetadataVersion.IBP_0_11_0_IV0, "unclean.leader.election.enable", "true"),
)
"""The default of a key in the releases before a version. Releases before 3.6 do not verify partitions (KIP-890)."""


def release_defaults(text: str) -> dict[str, str]:
    """By key, those of the release that a version names; empty if there is none."""
    try:
        release = release_of(text)
    except ValueError:
        return {}
    version = MetadataVersion.of_text(release)
    defaults = {key: value for since, key, value in _BEFORE if version < since}
    defaults["inter.broker.protocol.version"] = release
    if not version.ignores_message_format:
        defaults["log.message.format.version"] = release
    return defaults
