"""What a restore writes where: the mapping of partitions, the topics it needs, and the text of its progress.

Plain values: no Spark, no sockets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from spark_jobs.common.job import JobError

KEEP_FOR_EVER = {"retention.ms": "-1"}
"""Archives are old: the cluster's default retention would delete what is restored within minutes."""
MAX_POSITIONS_BYTES = 4_096
"""Kafka's default of `offset.metadata.max.bytes`."""


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"


Positions = dict[Place, int]
"""For each partition of the archive, the offset that is restored next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """The records of an archive that are restored: from `starting_timestamp_ms` on and before `ending_timestamp_ms`.

    None: no limit.
    """

    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None

    def limits(self) -> dict[str, int]:
        """The limits that there are, by the names of their options."""
        both = {"starting-timestamp": self.starting_timestamp_ms, "ending-timestamp": self.ending_timestamp_ms}
        return {name: limit_ms for name, limit_ms in both.items() if limit_ms is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What an archive holds of one partition."""

    place: Place
    records: int
    offsets: int
    """Fewer than `records` if rows have the offset of another."""
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Offsets of one partition that have different records: those of a topic, and of a later one of the same name."""

    place: Place
    offsets: int
    first_offset: int
    last_offset: int
    older_until_ms: int
    newer_from_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceMapping:
    """New names and numbers; what it does not name stays as it is."""

    topics: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[tuple[str | None, int], int] = field(default_factory=dict)
    """By topic of the archive and partition; None stands for every topic that has no entry of its own."""

    def target(self, place: Place) -> Place:
        partition = self.partitions.get((place.topic, place.partition))
        if partition is None:
            partition = self.partitions.get((None, place.partition), place.partition)
        return Place(self.topics.get(place.topic, place.topic), partition)


def partitions_needed(targets: Iterable[Place]) -> dict[str, int]:
    """How many partitions each target topic must have."""
    needed: dict[str, int] = {}
    for target in targets:
        needed[target.topic] = max(needed.get(target.topic, 0), target.partition + 1)
    return needed


def missing_topics(needed: Mapping[str, int], there: Mapping[str, int]) -> dict[str, int]:
    """The topics to create, with their partitions. Raises: JobError if one is there with too few."""
    for topic, count in needed.items():
        if topic in there and there[topic] < count:
            raise JobError(
                f"the topic {topic} has {there[topic]} partitions and the restore needs {count}: "
                "add partitions, or map them with --map-partition"
            )
    return {topic: count for topic, count in needed.items() if topic not in there}


def check_overlaps(archive: str, overlaps: Sequence[Overlap]) -> None:
    """Refuse records of two topics of one name: merged by offset, they would be a topic that never was.

    The archive has no topic ids, so only the operator knows which topic is wanted. Raises: JobError.
    """
    if not overlaps:
        return
    first = min(overlaps, key=lambda overlap: overlap.place)
    more = f", and in {len(overlaps) - 1} more partitions" if len(overlaps) > 1 else ""
    raise JobError(
        f"{archive} has different records with the same offset, {first.offsets} of them in {first.place} "
        f"(offsets {first.first_offset} to {first.last_offset}){more}: the topic was deleted and created again. Choose "
        "the newer one with --starting-timestamp, or the older one with --ending-timestamp: the time at which it was "
        f"created again. At these offsets, the older records are of {shown_time(first.older_until_ms)} at the latest, "
        f"the newer ones of {shown_time(first.newer_from_ms)} at the earliest"
    )


def shown_time(ms: int) -> str:
    """For the terminal. Python's times end with the year 9999; records may have others."""
    try:
        return f"{datetime.fromtimestamp(ms / 1_000, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def config_warnings(topic: str, configs: Mapping[str, str], first_ms: int, now_ms: int) -> list[str]:
    """What the configs of a target topic will do to the restored records, one line each."""
    lines = []
    if configs.get("message.timestamp.type") == "LogAppendTime":
        lines.append(f"{topic} has message.timestamp.type=LogAppendTime: the broker replaces the timestamps")
    retention_ms = int(configs.get("retention.ms") or -1)
    if "delete" in configs.get("cleanup.policy", "delete") and 0 <= retention_ms < now_ms - first_ms:
        lines.append(f"{topic} has retention.ms={retention_ms}: the broker deletes restored records that are older")
    return lines


def positions_text(positions: Mapping[Place, int], times: TimeRange) -> str:
    """The progress of a target partition, kept as the metadata of its committed offset. Raises: JobError.

    It names the times too: below a position, the records of other times may not be there.
    """
    limits = [f"{name}={limit_ms}" for name, limit_ms in times.limits().items()]
    text = ",".join([*limits, *(f"{place}:{offset}" for place, offset in sorted(positions.items()))])
    if len(text) > MAX_POSITIONS_BYTES:
        raise JobError(
            f"{len(positions)} partitions are mapped to one, and the progress of so many does not fit into the "
            f"{MAX_POSITIONS_BYTES} bytes of offset.metadata.max.bytes: map fewer to one"
        )
    return text


def positions_of(text: str, group: str, times: TimeRange) -> Positions:
    """The progress from its text. Raises: JobError if the group belongs to something else, or to other times."""
    positions: Positions = {}
    limits: dict[str, str] = {}
    for entry in filter(None, text.split(",")):
        name, is_limit, limit_ms = entry.partition("=")
        if is_limit:
            limits[name] = limit_ms
            continue
        parts = entry.split(":")
        if len(parts) != 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):
            raise JobError(f"the committed offsets of the group {group} are not those of a restore: {entry[:80]!r}")
        positions[Place(parts[0], int(parts[1]))] = int(parts[2])
    if positions and limits != {name: str(limit_ms) for name, limit_ms in times.limits().items()}:
        stored = " ".join(f"--{name} {limit_ms}" for name, limit_ms in limits.items()) or "all times"
        raise JobError(
            f"the group {group} holds the progress of a restore of other times ({stored}): go on with those, or give "
            "another --group, which writes all records of the new times"
        )
    return positions
