"""The replicas that partitions shall have: JSON of kafka-reassign-partitions, and the throttles while replicas move.

A file contains `{"version": 1, "partitions": [...]}` with `{"topic": "t", "partition": 0, "replicas": [1, 2],
"log_dirs": ["any", "/data"]}` for each partition; `log_dirs` is optional, and with "any" the broker chooses.

Kafka: ReassignPartitionsCommand.parseExecuteAssignmentArgs, ReassignPartitionsCommand.calculateProposedMoveMap,
ReassignPartitionsCommand.calculateLeaderThrottles, ReassignPartitionsCommand.calculateFollowerThrottles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar, cast

from odradek.broker.tools.command.failures import CommandFailed
from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    ints,
    json_object,
    list_in,
    partition_in,
    str_in,
)
from odradek.protocol.topic_partition import TopicPartition

ANY_LOG_DIR: Final = "any"
VERSION: Final = 1

T = TypeVar("T")
Assignment = Mapping[TopicPartition, Sequence[int]]


class Replica(NamedTuple):
    """One replica of a partition, by broker."""

    broker_id: int
    topic_partition: TopicPartition

    def __str__(self) -> str:
        return f"{self.topic_partition}-{self.broker_id}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The brokers that each partition shall have, and the directories that some replicas shall have."""

    partitions: Assignment
    log_dirs: Mapping[Replica, str] = field(default_factory=dict)


def parse_plan(text: str) -> Plan:
    """Raises: CommandFailed if the text is no plan."""
    entries: list[tuple[TopicPartition, list[int]]] = []
    log_dirs: dict[Replica, str] = {}
    try:
        for entry in _list_of_version_1(text, "partitions"):
            tp = partition_in(entry)
            replicas = [*ints(list_in(_object(entry), "replicas"))]
            paths = _object(entry).get("log_dirs", [ANY_LOG_DIR] * len(replicas))
            if not isinstance(paths, list) or len(paths) != len(replicas):
                raise CommandFailed(
                    f"Size of replicas list {replicas} is different from size of log dirs list {paths} for partition "
                    f"{tp}"
                )
            entries.append((tp, replicas))
            for broker_id, path in zip(replicas, paths, strict=True):
                if path != ANY_LOG_DIR:
                    log_dirs[Replica(broker_id, tp)] = str(path)
    except (BadZnode, TypeError) as error:
        raise CommandFailed(f"not a list of partitions and replicas: {error}") from error
    _check(entries)
    return Plan(dict(entries), log_dirs)


def parse_topics(text: str) -> list[str]:
    """`{"version": 1, "topics": [{"topic": "t"}]}`. Raises: CommandFailed."""
    try:
        topics = [str_in(_object(entry), "topic") for entry in _list_of_version_1(text, "topics")]
    except BadZnode as error:
        raise CommandFailed(f"not a list of topics: {error}") from error
    if repeated := _repeated(topics):
        raise CommandFailed(f"List of topics to reassign contains duplicate entries: {','.join(repeated)}")
    return topics


def parse_partitions(text: str) -> list[TopicPartition]:
    """`{"partitions": [{"topic": "t", "partition": 1}]}`. Raises: CommandFailed."""
    try:
        found = [partition_in(entry) for entry in list_in(json_object(text.encode(), "the file"), "partitions")]
    except BadZnode as error:
        raise CommandFailed(f"not a list of partitions: {error}") from error
    if repeated := _repeated(found):
        raise CommandFailed(f"Replica election data contains duplicate partitions: {','.join(map(str, repeated))}")
    return found


def _list_of_version_1(text: str, key: str) -> list[Json]:
    parsed = json_object(text.encode(), "the file")
    version = int_in(parsed, "version", VERSION)
    if version != VERSION:
        raise CommandFailed(f"Not supported version field value {version}")
    return list_in(parsed, key) if key in parsed else []


def _object(entry: Json) -> dict[str, Json]:
    if not isinstance(entry, dict):
        raise BadZnode(f"{entry!r} is no object")
    return entry


def _check(entries: Sequence[tuple[TopicPartition, list[int]]]) -> None:
    if not entries:
        raise CommandFailed("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in entries):
        raise CommandFailed("Partition replica list cannot be empty")
    if repeated := _repeated([topic_partition for topic_partition, _ in entries]):
        raise CommandFailed(
            f"Partition reassignment contains duplicate topic partitions: {','.join(map(str, repeated))}"
        )
    for topic_partition, replicas in entries:
        if twice := _repeated(replicas):
            raise CommandFailed(
                f"Partition replica lists may not contain duplicate entries: {topic_partition} contains multiple "
                f"entries for {','.join(map(str, twice))}"
            )


def _repeated(elements: Sequence[T]) -> list[T]:
    return [element for element in dict.fromkeys(elements) if elements.count(element) > 1]


def format_plan(partitions: Assignment) -> str:
    """The JSON that `parse_plan` reads, as kafka-reassign-partitions writes it."""
    return encode(plan_value(partitions)).decode()


def plan_value(partitions: Assignment) -> dict[str, Json]:
    """The plan before it is written as JSON."""
    entries = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": [*replicas],
            "log_dirs": [ANY_LOG_DIR] * len(replicas),
        }
        for tp, replicas in sorted(partitions.items())
    ]
    return {"version": VERSION, "partitions": cast("list[Json]", entries)}


class Move(NamedTuple):
    """The brokers that have a partition, and the brokers that shall get it."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves(
    ongoing: Mapping[TopicPartition, Move], proposed: Assignment, current: Assignment
) -> dict[TopicPartition, Move]:
    """All moves when `proposed` is started in addition to `ongoing`."""
    found = dict(ongoing)
    for tp, replicas in proposed.items():
        sources = found[tp].sources if tp in found else frozenset(current[tp])
        found[tp] = Move(sources, frozenset(replicas) - sources)
    return found


class Throttles(NamedTuple):
    """Values of `leader.` and `follower.replication.throttled.replicas` by topic, and the throttled brokers."""

    leaders: dict[str, str]
    followers: dict[str, str]
    brokers: list[int]


def throttles(moving: Mapping[TopicPartition, Move]) -> Throttles:
    """Sources are throttled as leaders, destinations as followers."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for (topic, partition), move in moving.items():
        leaders.setdefault(topic, set()).update(_entries(partition, move.sources))
        followers.setdefault(topic, set()).update(_entries(partition, move.destinations - move.sources))
    brokers = {broker for move in moving.values() for broker in move.sources | move.destinations}
    return Throttles(_joined(leaders), _joined(followers), sorted(brokers))


def _entries(partition: int, brokers: Iterable[int]) -> list[str]:
    return [f"{partition}:{broker}" for broker in brokers]


def _joined(entries: Mapping[str, set[str]]) -> dict[str, str]:
    return {topic: ",".join(sorted(found)) for topic, found in entries.items()}
