"""The options of the data source, from Spark's text to checked values.

Every refused option is a `KafkaLogError` with a message of one line that names the option.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from odradek.protocol.expressions import compile_expression
from odradek.protocol.records.layout import MAX_DECOMPRESSED_BYTES
from spark_jobs.kafka_log.errors import KafkaLogError

EARLIEST: Final = -2
LATEST: Final = -1
"""As in the JSON of Spark's kafka source."""

PartitionOffsets: TypeAlias = Mapping[tuple[str, int], int]

DEFAULT_MAX_ROWS: Final = 10_000
"""Rows of one Arrow batch: Spark's default of spark.sql.execution.arrow.maxRecordsPerBatch."""
DEFAULT_MAX_BYTES: Final = 8 * 1024 * 1024
"""Bytes of keys and values after which an Arrow batch ends."""
DEFAULT_MAX_BATCH_BYTES: Final = 128 * 1024 * 1024
"""The largest record batch that is read into memory, as it stands on the disk."""

NAMES: Final = (
    "path",
    "paths",
    "topic",
    "topicPattern",
    "partition",
    "startingOffset",
    "endingOffset",
    "startingTimestamp",
    "endingTimestamp",
    "isolationLevel",
    "includeControl",
    "includeHeaders",
    "beyondHighWatermark",
    "replicas",
    "failOnDataLoss",
    "mode",
    "maxRowsPerBatch",
    "maxBytesPerBatch",
    "maxBatchBytes",
    "maxDecompressedBytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Where a partition begins or ends: a time, else offsets for some partitions, else one for all."""

    offset: int
    """For partitions that `offsets` does not name; `EARLIEST` or `LATEST` too."""
    offsets: PartitionOffsets
    timestamp_ms: int | None

    def of(self, topic: str, partition: int) -> int:
        return self.offsets.get((topic, partition), self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What is read, and how."""

    log_dirs: tuple[str, ...]
    topics: tuple[str, ...]
    """Empty: all topics, or those of the pattern."""
    topic_pattern: str | None
    partitions: frozenset[int]
    """Empty: all."""
    starting: Boundary
    ending: Boundary
    read_committed: bool
    include_control: bool
    include_headers: bool
    beyond_high_watermark: bool
    all_replicas: bool
    fail_on_data_loss: bool
    permissive: bool
    max_rows: int
    max_bytes: int
    max_batch_bytes: int
    max_decompressed_bytes: int

    def selects(self, topic: str, partition: int) -> bool:
        if self.partitions and partition not in self.partitions:
            return False
        if self.topics:
            return topic in self.topics
        return self.topic_pattern is None or compile_expression(self.topic_pattern).fullmatch(topic) is not None


def parse_options(options: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Check the options of a reader. Names are compared without case, as Spark does.

    Raises: KafkaLogError.
    """
    given = {name.lower(): value for name, value in options.items()}
    known = {name.lower(): name for name in NAMES}
    for name in given:
        if name not in known:
            raise KafkaLogError(f"there is no option {name}; the options are {', '.join(NAMES)}")
    topics = tuple(_words(given.get("topic", "")))
    pattern = given.get("topicpattern")
    if topics and pattern is not None:
        raise KafkaLogError("the options topic and topicPattern exclude each other")
    if pattern is not None:
        try:
            compile_expression(pattern)
        except ValueError as error:
            raise KafkaLogError(f"topicPattern {pattern!r} is no regular expression: {error}") from None
    if streaming and {"endingoffset", "endingtimestamp"} & given.keys():
        raise KafkaLogError("a stream has no end: endingOffset and endingTimestamp are options of a batch")
    if streaming and given.get("replicas", "one").lower() == "all":
        raise KafkaLogError("a stream reads one replica of a partition: replicas=all is an option of a batch")
    return ReadOptions(
        log_dirs=_log_dirs(given),
        topics=topics,
        topic_pattern=pattern,
        partitions=frozenset(_number("partition", word) for word in _words(given.get("partition", ""))),
        starting=_boundary(given, "starting", LATEST if streaming else EARLIEST),
        ending=_boundary(given, "ending", LATEST),
        read_committed=_choice(given, "isolationLevel", ("read_uncommitted", "read_committed")) == "read_committed",
        include_control=_flag(given, "includeControl", False),
        include_headers=_flag(given, "includeHeaders", False),
        beyond_high_watermark=_flag(given, "beyondHighWatermark", False),
        all_replicas=_choice(given, "replicas", ("one", "all")) == "all",
        fail_on_data_loss=_flag(given, "failOnDataLoss", True),
        permissive=_choice(given, "mode", ("FAILFAST", "PERMISSIVE")) == "PERMISSIVE",
        max_rows=_positive(given, "maxRowsPerBatch", DEFAULT_MAX_ROWS),
        max_bytes=_positive(given, "maxBytesPerBatch", DEFAULT_MAX_BYTES),
        max_batch_bytes=_positive(given, "maxBatchBytes", DEFAULT_MAX_BATCH_BYTES),
        max_decompressed_bytes=_positive(given, "maxDecompressedBytes", MAX_DECOMPRESSED_BYTES),
    )


def _log_dirs(given: Mapping[str, str]) -> tuple[str, ...]:
    """`load("/a,/b")` is the option path, `load(["/a", "/b"])` is paths, in JSON."""
    found = json.loads(given["paths"]) if "paths" in given else _words(given.get("path", ""))
    if not found:
        raise KafkaLogError("no log directory is given: load('/var/lib/kafka/data'), several separated by commas")
    return tuple(dict.fromkeys(os.path.abspath(path.removeprefix("file://")) for path in found))


def _boundary(given: Mapping[str, str], which: str, default: int) -> Boundary:
    timestamp = given.get(f"{which}timestamp")
    text = given.get(f"{which}offset", "").strip()
    name = f"{which}Offset"
    offset = default
    offsets: PartitionOffsets = {}
    if text in ("earliest", "latest"):
        offset = EARLIEST if text == "earliest" else LATEST
    elif text.startswith("{"):
        offsets = _offsets(name, text)
    elif text:
        offset = _number(name, text)
    return Boundary(
        offset=offset,
        offsets=offsets,
        timestamp_ms=None if timestamp is None else _number(f"{which}Timestamp", timestamp),
    )


def _offsets(name: str, text: str) -> PartitionOffsets:
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, offsets in json.loads(text).items()
            for partition, offset in offsets.items()
        }
    except (AttributeError, TypeError, ValueError):
        example = '{"orders": {"0": 23, "1": -2}}'
        raise KafkaLogError(f"{name} {text!r} is not earliest, latest, a number, or JSON like {example}") from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII):
        raise KafkaLogError(f"{name} {text!r} is not a number of 0 or more")
    return int(text)


def _positive(given: Mapping[str, str], name: str, default: int) -> int:
    number = _number(name, given.get(name.lower(), str(default)))
    if not number:
        raise KafkaLogError(f"{name} must be at least 1")
    return number


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """The first is the default."""
    value = given.get(name.lower(), choices[0])
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise KafkaLogError(f"{name} {value!r} is not {' or '.join(choices)}")


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    return _choice(given, name, ("true", "false") if default else ("false", "true")) == "true"
