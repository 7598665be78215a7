"""The rules of a topic's config for appends, and the result of a validation.

Kafka: LogValidator.ValidationResult.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.layout import CREATE_TIME, MAX_DECOMPRESSED_BYTES
from odradek.storage.config.log_config import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.append_info import AppendedBatch
    from odradek.storage.config.log_config import LogConfig

    Bytes = bytes | bytearray | memoryview

_TARGET_CODECS: Final = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRules:
    """The rules of a topic's config for appends, computed once per change of the config."""

    partition: object
    max_message_bytes: int
    compact: bool
    timestamp_type: int
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    target_codec: int | None
    """None keeps the producer's codec."""
    level: int | None
    record_version: int
    """The magic to write."""
    allows_zstd: bool
    walk_records: bool
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES

    @classmethod
    def of_config(
        cls,
        config: LogConfig,
        partition: object,
        *,
        validate_all: bool = False,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> ValidationRules:
        codec = _TARGET_CODECS.get(config.compression_type)
        levels = {
            CompressionType.GZIP: config.compression_gzip_level,
            CompressionType.LZ4: config.compression_lz4_level,
            CompressionType.ZSTD: config.compression_zstd_level,
        }
        has_limits = (
            config.message_timestamp_before_max_ms != LONG_MAX or config.message_timestamp_after_max_ms != LONG_MAX
        )
        return cls(
            partition=partition,
            max_message_bytes=config.max_message_bytes,
            compact=config.compact,
            timestamp_type=config.message_timestamp_type,
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            target_codec=codec,
            level=None if codec is None else levels.get(codec),
            record_version=config.record_version,
            allows_zstd=config.allows_zstd,
            walk_records=validate_all
            or config.compact
            or (has_limits and config.message_timestamp_type == CREATE_TIME),
            max_decompressed_bytes=max_decompressed_bytes,
        )


class ValidatedBatch(NamedTuple):
    """A batch, or messages of an old format, that is ready to be written: `parts` have the assigned offsets.

    `batch` is a view of the received batch, which may not have them.
    """

    batch: AnyBatch
    parts: list[Bytes]
    size: int
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    messages: Sequence[AppendedBatch] = ()
    """The single messages of an old format, for the indexes."""
    is_rebuilt: bool = False
    """The records were written anew: in another format, with another codec, or with other offsets inside."""
    conversion_ns: int = 0
    """How long that took."""
    temporary_bytes: int = 0
    """Memory for the records that are written anew, before compression. Kafka: temporaryMemoryBytes."""
