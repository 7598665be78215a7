"""The settings of the log cleaner, `log.cleaner.*`, and the checks of their dynamic changes.

Kafka: CleanerConfig, LogCleaner.validateReconfiguration.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from odradek.storage.config.config_def import ConfigError

OFFSET_MAP_BYTES_MAX: Final = 2**31 - 1
"""The maximum for one cleaner, even if log.cleaner.dedupe.buffer.size is larger."""

BYTES_PER_ENTRY: Final = 24

NO_ROOM: Final = (
    "offset map is too small to fit in even a single message, so log cleaning will never make progress. You can "
    "increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads"
)

RECONFIGURABLE: Final = frozenset(
    {
        "log.cleaner.threads",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "message.max.bytes",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.backoff.ms",
    }
)
"""The broker configs whose change must be passed to the cleaner. Kafka: LogCleaner.ReconfigurableConfigs."""


def has_room(memory_bytes: int, load_factor: float) -> bool:
    """Whether a map has room for more than one key, as a compaction needs it. Kafka: the constructor of Cleaner."""
    return memory_bytes // BYTES_PER_ENTRY * load_factor > 1  # not for NaN


class CleanerConfig(NamedTuple):
    """The settings with Kafka's defaults. Buffers and rates are the sums for all `threads` cleaners."""

    enable: bool = True
    threads: int = 1
    dedupe_buffer_bytes: int = 134_217_728
    dedupe_buffer_load_factor: float = 0.9
    io_buffer_bytes: int = 524_288
    max_message_bytes: int = 1_048_588
    io_max_bytes_per_second: float = 1.7976931348623157e308
    backoff_ms: int = 15_000

    @property
    def offset_map_bytes(self) -> int:
        """The bytes for the offset map of one cleaner."""
        return min(self.dedupe_buffer_bytes // self.threads, OFFSET_MAP_BYTES_MAX)

    def validate_reconfiguration(self, new: CleanerConfig) -> None:
        """Raises ConfigError for fewer than half or more than double the present number of threads."""
        if new.threads < 1:
            raise ConfigError("Log cleaner threads should be at least 1")
        if new.threads < self.threads // 2:
            raise ConfigError(
                f"Log cleaner threads cannot be reduced to less than half the current value {self.threads}"
            )
        if new.threads > self.threads * 2:
            raise ConfigError(
                f"Log cleaner threads cannot be increased to more than double the current value {self.threads}"
            )
