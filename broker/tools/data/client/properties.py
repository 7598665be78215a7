"""Properties of clients on the command line and in files: Apache's names, and librdkafka's for the same settings.

Kafka: ProducerConfig, ConsumerConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.broker.tools.command.client_config import integer, read_properties, resolved
from odradek.broker.tools.command.failures import CommandFailed
from odradek.protocol.java_split import java_trim
from odradek.protocol.records.compression import CompressionType

ALIASES: Final[Mapping[str, str]] = {
    "metadata.broker.list": "bootstrap.servers",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "message.timeout.ms": "delivery.timeout.ms",
    "topic.auto.offset.reset": "auto.offset.reset",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}
"""librdkafka's name -> Apache's."""

PRODUCER_KEYS: Final = (
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.request.size",
    "transaction.timeout.ms",
    "transactional.id",
)
CONSUMER_KEYS: Final = (
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "check.crcs",
    "client.rack",
    "enable.auto.commit",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "heartbeat.interval.ms",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "session.timeout.ms",
)
WITHOUT_EFFECT: Final = frozenset({"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"})
"""Needed by Java's clients; the commands send and print bytes."""


def gather(file: str | None, pairs: Iterable[str]) -> dict[str, str]:
    """Settings from a properties file and, above it, from `name=value` pairs. Raises: CommandFailed."""
    settings = {} if file is None else read_properties(file)
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or not name:
            raise CommandFailed(f"Invalid property: {pair}: it is not name=value")
        settings[name.strip()] = value
    settings = resolved(settings)
    return {ALIASES.get(name, name): java_trim(value) for name, value in settings.items() if name not in WITHOUT_EFFECT}


class Properties:
    """Typed access to settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    def text(self, name: str, default: str) -> str:
        return self._settings.get(name, default)

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """Raises: CommandFailed."""
        return integer(self._settings, name, default, least=least)

    def boolean(self, name: str, default: bool) -> bool:
        """Raises: CommandFailed."""
        text = self._settings.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise CommandFailed(
                f"Invalid value {text} for configuration {name}: Expected value to be either true or false"
            )
        return text == "true"

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """Raises: CommandFailed."""
        value = self._settings.get(name, default).lower()
        if value not in choices:
            raise CommandFailed(
                f"Invalid value {value} for configuration {name}: String must be one of: {', '.join(choices)}"
            )
        return value

    def acks(self, default: int) -> int:
        """-1, 0 or 1. Raises: CommandFailed."""
        text = self._settings.get("acks", str(default))
        if text not in ("all", "-1", "0", "1"):
            raise CommandFailed(f"Invalid value {text} for configuration acks: String must be one of: all, -1, 0, 1")
        return -1 if text == "all" else int(text)

    def compression(self, default: str) -> tuple[int, int | None]:
        """The codec, and its level (None: the codec's default). Raises: CommandFailed."""
        name = self.choice("compression.type", default, CODECS)
        key = f"compression.{name}.level"
        if name not in _LEVELS or key not in self._settings:
            return CODECS[name], None
        level = self.number(key, 0, least=-(2**31))
        if level not in _LEVELS[name]:
            raise CommandFailed(f"Invalid value {level} for configuration {key}: {_LEVEL_TEXTS[name]}")
        return CODECS[name], level


CODECS: Final = {codec.name.lower(): codec for codec in CompressionType}
_LEVELS: Final = {"gzip": (-1, *range(1, 10)), "lz4": range(1, 18), "zstd": range(-131072, 23)}
_LEVEL_TEXTS: Final = {
    "gzip": "Value must be between 1 and 9 or equal to -1",
    "lz4": "Value must be between 1 and 17",
    "zstd": "Value must be between -131072 and 22",
}
