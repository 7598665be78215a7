"""What a scenario did to a cluster, as a value that can be stored and done again.

    with scenarios.leader_moves(cluster, "t") as moves:
        ...
    text = moves.record().to_json()
    with scenarios.replay(cluster, text):
        ...

A step is a method of the cluster with its arguments: which broker, which leader. `when` says in which part of the
scenario it was done. A client that sends one request at a time, and waits for the end of the steps before it sends the
next, sends the same requests to the same brokers again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT_VERSION: Final = 1

When = Literal["begin", "meanwhile", "end"]

ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "restart": frozenset({"broker_id"}),
    "start_broker": frozenset({"broker_id"}),
    "kill": frozenset({"broker_id"}),
    "move_leader": frozenset({"topic", "partition", "to"}),
    "partition": frozenset({"groups", "without_zookeeper"}),
    "heal": frozenset(),
}
"""Of each method that changes a cluster."""


class ClusterPort(Protocol):
    """What scenarios use of a `Cluster`."""

    @property
    def brokers(self) -> Mapping[int, object]: ...

    @property
    def controller(self) -> int: ...

    def leader(self, topic: str, partition: int = 0) -> int: ...

    def in_sync_replicas(self, topic: str, partition: int = 0) -> set[int]: ...

    def restart(self, broker_id: int) -> object: ...

    def start_broker(self, broker_id: int) -> object: ...

    def kill(self, broker_id: int, *, notice: bool = True) -> None: ...

    def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None: ...

    def partition(self, *groups: Iterable[int], without_zookeeper: Iterable[int] = ()) -> None: ...

    def heal(self) -> None: ...


class ClusterStep(NamedTuple):
    """One change of a cluster."""

    when: When
    do: str
    """A key of `ARGUMENTS`."""
    arguments: dict[str, object]


class ClusterRecord(NamedTuple):
    """The steps in the order in which they were done."""

    steps: tuple[ClusterStep, ...]

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT_VERSION, "steps": [step._asdict() for step in self.steps]}, indent=1)

    @staticmethod
    def of_json(text: str) -> ClusterRecord:
        """Raises: ValueError."""
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT_VERSION:
            raise ValueError(f"the record has not the format {FORMAT_VERSION}")
        return ClusterRecord(tuple(_step(each) for each in plain["steps"]))


class NotedCluster:
    """Does what it is asked to do to a cluster, and notes what was done. `when`: the part of the scenario."""

    def __init__(self, cluster: ClusterPort) -> None:
        self._cluster = cluster
        self.when: When = "begin"
        self.steps: list[ClusterStep] = []

    def do(self, what: str, **arguments: object) -> None:
        """Noted also if it fails: it may have been done in part."""
        step = ClusterStep(self.when, what, arguments)
        self.steps.append(step)
        _do(self._cluster, step)


def _do(cluster: ClusterPort, step: ClusterStep) -> None:
    arguments = step.arguments
    match step.do:
        case "move_leader":
            topic, partition = cast("str", arguments["topic"]), cast("int", arguments["partition"])
            cluster.move_leader(topic, partition, to=cast("int", arguments["to"]))
        case "partition":
            groups = cast("list[list[int]]", arguments["groups"])
            cluster.partition(*groups, without_zookeeper=cast("list[int]", arguments["without_zookeeper"]))
        case "heal":
            cluster.heal()
        case "restart":
            cluster.restart(cast("int", arguments["broker_id"]))
        case "start_broker":
            cluster.start_broker(cast("int", arguments["broker_id"]))
        case "kill":
            cluster.kill(cast("int", arguments["broker_id"]))


def _step(plain: object) -> ClusterStep:
    """Raises: ValueError."""
    if isinstance(plain, dict) and plain.keys() == {"when", "do", "arguments"}:
        when, do, arguments = plain["when"], plain["do"], plain["arguments"]
        is_known = when in ("begin", "meanwhile", "end") and do in ARGUMENTS and isinstance(arguments, dict)
        if is_known and arguments.keys() == ARGUMENTS[do]:
            return ClusterStep(when, do, arguments)
    raise ValueError(f"{plain!r} is no step of a record")
