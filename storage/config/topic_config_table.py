"""The table of topic configs: names, types, defaults and limits of Kafka 3.9, with our own documentation.

Data only: `storage/config/log_config.py` uses it; DescribeConfigs and the configuration page print it.

Kafka: TopicConfig.
"""

from __future__ import annotations

import re
from typing import Final

from odradek.protocol.metadata_version import MetadataVersion
from odradek.storage.config.config_def import (
    ConfigError,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Importance,
    ValidList,
    ValidString,
    at_least,
    between,
)

_LONG_MAX: Final = str(2**63 - 1)
_REPLICA = re.compile(r"([0-9]+:[0-9]+)?", re.ASCII)

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, DOUBLE, LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
MEDIUM, LOW = Importance.MEDIUM, Importance.LOW


class ThrottledReplicas:
    """`*`, or a list of partition:broker pairs."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        elements = value if isinstance(value, list) else []
        if "".join(elements) != "*" and not all(map(_REPLICA.fullmatch, set(elements))):
            raise ConfigError.of_value(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class VersionName:
    """The name of a `MetadataVersion`. Kafka: MetadataVersionValidator."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        try:
            MetadataVersion.of_text(str(value))
        except ValueError as error:
            raise ConfigError.of_value(name, value, str(error)) from None

    def __str__(self) -> str:
        return f"[{', '.join(map(str, MetadataVersion))}]"


class GzipLevel:
    """A compression level of zlib: -1 for its default, or 1 to 9."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int):
            raise ConfigError.of_value(name, None, "Value must be non-null")
        if value != -1 and not 1 <= value <= 9:
            raise ConfigError.of_value(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "[1,...,9] or -1"


TOPIC_CONFIG_KEYS: Final = (
    ConfigKey(
        "segment.bytes",
        INT,
        "1073741824",
        MEDIUM,
        "The largest size of one segment file of the log. Retention and compaction work on whole segments, so larger "
        "segments mean fewer files but coarser control over retention.",
        at_least(14),
    ),
    ConfigKey(
        "segment.ms",
        LONG,
        "604800000",
        MEDIUM,
        "After this time a new segment is started even if the current one is not full, so that old data can be deleted "
        "or compacted.",
        at_least(1),
    ),
    ConfigKey(
        "segment.jitter.ms",
        LONG,
        "0",
        MEDIUM,
        "Up to this much is taken off segment.ms at random, so that many logs do not start new segments at once.",
        at_least(0),
    ),
    ConfigKey(
        "segment.index.bytes",
        INT,
        "10485760",
        MEDIUM,
        "The largest size of one index file. A full index starts a new segment.",
        at_least(4),
    ),
    ConfigKey(
        "flush.messages",
        LONG,
        _LONG_MAX,
        MEDIUM,
        "Forces the log to disk after this many messages; 1 does so for every message. Durability is normally left to "
        "replication and to the operating system.",
        at_least(1),
    ),
    ConfigKey(
        "flush.ms",
        LONG,
        _LONG_MAX,
        MEDIUM,
        "Forces the log to disk when its oldest unflushed message has waited this long. Durability is normally left to "
        "replication and to the operating system.",
        at_least(0),
    ),
    ConfigKey(
        "retention.bytes",
        LONG,
        "-1",
        MEDIUM,
        "With the delete policy: old segments are removed once the partition is larger than this. -1 sets no limit. "
        "The limit holds per partition.",
    ),
    ConfigKey(
        "retention.ms",
        LONG,
        "604800000",
        MEDIUM,
        "With the delete policy: segments whose newest record is older than this are removed. -1 sets no limit.",
        at_least(-1),
    ),
    ConfigKey(
        "max.message.bytes",
        INT,
        "1048588",
        MEDIUM,
        "The largest record batch the topic accepts, counted after compression and with its header.",
        at_least(0),
    ),
    ConfigKey(
        "index.interval.bytes",
        INT,
        "4096",
        MEDIUM,
        "About one index entry is made per this many bytes of the log. Smaller values find positions more exactly and "
        "make the index larger.",
        at_least(0),
    ),
    ConfigKey(
        "delete.retention.ms",
        LONG,
        "86400000",
        MEDIUM,
        "How long a tombstone stays in a compacted log. A reader that starts at offset 0 has this long to reach the "
        "head if it must see every deletion.",
        at_least(0),
    ),
    ConfigKey(
        "min.compaction.lag.ms",
        LONG,
        "0",
        MEDIUM,
        "A record stays uncompacted for at least this long. Applies to compacted logs.",
        at_least(0),
    ),
    ConfigKey(
        "max.compaction.lag.ms",
        LONG,
        _LONG_MAX,
        MEDIUM,
        "A record becomes eligible for compaction after at most this long. Applies to compacted logs.",
        at_least(1),
    ),
    ConfigKey(
        "file.delete.delay.ms",
        LONG,
        "60000",
        MEDIUM,
        "How long a removed file stays on disk, renamed, before it is unlinked.",
        at_least(0),
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        "0.5",
        MEDIUM,
        "A log is compacted once this share of it has not been compacted yet. It bounds the space lost to duplicates; "
        "higher values make fewer, more efficient passes.",
        between(0, 1),
    ),
    ConfigKey(
        "cleanup.policy",
        LIST,
        "delete",
        MEDIUM,
        "What happens to old segments: delete removes them by time and size, compact keeps the latest record of each "
        "key. Both may be given, separated by a comma.",
        ValidList(("compact", "delete")),
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        MEDIUM,
        "Whether a replica outside the in-sync set may become leader when no other is left, at the price of losing "
        "data.",
    ),
    ConfigKey(
        "min.insync.replicas",
        INT,
        "1",
        MEDIUM,
        "With acks=all, a write is accepted only while at least this many replicas are in sync.",
        at_least(1),
    ),
    ConfigKey(
        "compression.type",
        STRING,
        "producer",
        MEDIUM,
        "The codec batches are stored with. producer keeps what the producer chose.",
        ValidString(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    ),
    ConfigKey(
        "compression.gzip.level",
        INT,
        "-1",
        MEDIUM,
        "The level used when compression.type is gzip; -1 is the codec's own default.",
        GzipLevel(),
    ),
    ConfigKey(
        "compression.lz4.level",
        INT,
        "9",
        MEDIUM,
        "The level used when compression.type is lz4.",
        between(1, 17),
    ),
    ConfigKey(
        "compression.zstd.level",
        INT,
        "3",
        MEDIUM,
        "The level used when compression.type is zstd.",
        between(-131072, 22),
    ),
    ConfigKey("preallocate", BOOLEAN, "false", MEDIUM, "Whether a new segment file is given its full size at once."),
    ConfigKey(
        "message.format.version",
        STRING,
        "3.0-IV1",
        MEDIUM,
        "Deprecated: records are written in the newest format that this version of Kafka knows. With an "
        "inter.broker.protocol.version of 3.0 or later it is ignored, and they are written in format 2.",
        VersionName(),
    ),
    ConfigKey(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        MEDIUM,
        "Whether a record's timestamp is the one its producer gave (CreateTime) or the time of its append "
        "(LogAppendTime).",
        ValidString(("CreateTime", "LogAppendTime")),
    ),
    ConfigKey(
        "message.timestamp.difference.max.ms",
        LONG,
        _LONG_MAX,
        MEDIUM,
        "Deprecated: stands in for message.timestamp.before.max.ms and message.timestamp.after.max.ms where these are "
        "not set.",
        at_least(0),
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        LONG,
        _LONG_MAX,
        MEDIUM,
        "With CreateTime: records whose timestamp lies further than this in the past are refused.",
        at_least(0),
    ),
    ConfigKey(
        "message.timestamp.after.max.ms",
        LONG,
        _LONG_MAX,
        MEDIUM,
        "With CreateTime: records whose timestamp lies further than this in the future are refused.",
        at_least(0),
    ),
    ConfigKey(
        "leader.replication.throttled.replicas",
        LIST,
        "",
        MEDIUM,
        "The replicas whose replication is throttled on the leader's side: partition:broker pairs, or * for all.",
        ThrottledReplicas(),
    ),
    ConfigKey(
        "follower.replication.throttled.replicas",
        LIST,
        "",
        MEDIUM,
        "The replicas whose replication is throttled on the follower's side: partition:broker pairs, or * for all.",
        ThrottledReplicas(),
    ),
    ConfigKey(
        "message.downconversion.enable",
        BOOLEAN,
        "true",
        LOW,
        "Whether old consumers get records converted to the format they know. When false they get "
        "UNSUPPORTED_VERSION. Replication is not affected.",
    ),
    ConfigKey("remote.storage.enable", BOOLEAN, "false", MEDIUM, "Tiered storage for the topic; not available here."),
    ConfigKey(
        "local.retention.ms",
        LONG,
        "-2",
        MEDIUM,
        "With tiered storage: how long segments stay on local disks. -2 takes retention.ms.",
        at_least(-2),
    ),
    ConfigKey(
        "local.retention.bytes",
        LONG,
        "-2",
        MEDIUM,
        "With tiered storage: how many bytes stay on local disks. -2 takes retention.bytes.",
        at_least(-2),
    ),
    ConfigKey(
        "remote.log.copy.disable",
        BOOLEAN,
        "false",
        MEDIUM,
        "With tiered storage: makes the remote data read-only; nothing more is copied.",
    ),
    ConfigKey(
        "remote.log.delete.on.disable",
        BOOLEAN,
        "false",
        MEDIUM,
        "With tiered storage: deletes the remote data when tiered storage is switched off for the topic.",
    ),
)
