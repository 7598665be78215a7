"""A deliberately simple metadata tree: a dictionary, for the real ones to be compared with."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from odradek.controller.tree.metadata_tree import (
    Check,
    Children,
    Create,
    Created,
    DataAndStat,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    MultiFailed,
    Operation,
    SetData,
    Stat,
    TreeError,
    WatchEvent,
    WatchEventType,
    parent_path,
)


@dataclass
class Node:
    data: bytes | None
    owner: int | None = None
    version: int = 0
    creations: int = 0
    deletions: int = 0


class Refused(Exception):
    """The name of the error an operation is answered with."""


@dataclass
class TreeModel:
    """The outcome of an operation is a plain tuple without transaction ids; owners are numbers of clients."""

    clients: int
    nodes: dict[str, Node] = field(default_factory=lambda: {"/": Node(None)})

    def __post_init__(self) -> None:
        self.events: list[list[WatchEvent]] = [[] for _ in range(self.clients)]
        self.data_watches: list[set[str]] = [set() for _ in range(self.clients)]
        self.child_watches: list[set[str]] = [set() for _ in range(self.clients)]

    def apply(self, client: int, operation: Operation[object]) -> object:
        changes: list[WatchEvent] = []
        try:
            match operation:
                case Multi(operations):
                    saved = copy.deepcopy(self.nodes)
                    results = []
                    for index, step in enumerate(operations):
                        try:
                            results.append(self.write(client, step, changes))
                        except Refused as refused:
                            self.nodes = saved
                            return ("MultiFailed", index, str(refused))
                    self.fire(changes)
                    return tuple(
                        result[0] if isinstance(step, Create) else result
                        for step, result in zip(operations, results, strict=True)
                    )
                case GetData() | Exists() | GetChildren():
                    return self.read(client, operation)
                case _:
                    result = self.write(client, operation, changes)
                    self.fire(changes)
                    return result
        except Refused as refused:
            return str(refused)

    def read(self, client: int, operation: GetData | Exists | GetChildren) -> object:
        node = self.nodes.get(operation.path)
        if node is None:
            if isinstance(operation, Exists):
                self.data_watches[client].add(operation.path)
                return None
            raise Refused("NoNode")
        (self.child_watches if isinstance(operation, GetChildren) else self.data_watches)[client].add(operation.path)
        match operation:
            case GetData():
                return (node.data, self.stat(operation.path))
            case Exists():
                return self.stat(operation.path)
            case GetChildren():
                return (self.children(operation.path), self.stat(operation.path))

    def write(self, client: int, operation: object, changes: list[WatchEvent]) -> object:
        match operation:
            case Create(path, data, mode):
                parent = self.nodes.get(parent_path(path))
                if parent is None:
                    raise Refused("NoNode")
                if mode.is_sequential:
                    path += f"{parent.creations:010d}"
                if path in self.nodes:
                    raise Refused("NodeExists")
                if parent.owner is not None:
                    raise Refused("NoChildrenForEphemerals")
                parent.creations += 1
                self.nodes[path] = Node(data, client if mode.is_ephemeral else None)
                changes += [
                    WatchEvent(WatchEventType.CREATED, path),
                    WatchEvent(WatchEventType.CHILDREN, parent_path(path)),
                ]
                return (path, self.stat(path))
            case SetData(path, data, version):
                node = self.expect(path, version)
                node.data = data
                node.version += 1
                changes.append(WatchEvent(WatchEventType.CHANGED, path))
                return self.stat(path)
            case Delete(path, version):
                self.expect(path, version)
                if self.children(path):
                    raise Refused("NotEmpty")
                self.delete(path, changes)
            case Check(path, version):
                self.expect(path, version)
        return None

    def delete(self, path: str, changes: list[WatchEvent]) -> None:
        del self.nodes[path]
        self.nodes[parent_path(path)].deletions += 1
        changes += [WatchEvent(WatchEventType.DELETED, path), WatchEvent(WatchEventType.CHILDREN, parent_path(path))]

    def expect(self, path: str, version: int) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise Refused("NoNode")
        if version not in (-1, node.version):
            raise Refused("BadVersion")
        return node

    def expire(self, client: int) -> None:
        self.data_watches[client].clear()
        self.child_watches[client].clear()
        changes: list[WatchEvent] = []
        for path in sorted(path for path, node in self.nodes.items() if node.owner == client):
            self.delete(path, changes)
        self.fire(changes)

    def fire(self, changes: list[WatchEvent]) -> None:
        for change in changes:
            for client in range(self.clients):
                heard = False
                if change.type is not WatchEventType.CHILDREN and change.path in self.data_watches[client]:
                    self.data_watches[client].discard(change.path)
                    heard = True
                is_about_children = change.type in (WatchEventType.CHILDREN, WatchEventType.DELETED)
                if is_about_children and change.path in self.child_watches[client]:
                    self.child_watches[client].discard(change.path)
                    heard = True
                if heard:
                    self.events[client].append(change)

    def children(self, path: str) -> tuple[str, ...]:
        prefix = path.rstrip("/") + "/"
        names = (p[len(prefix) :] for p in self.nodes if p.startswith(prefix) and p != "/")
        return tuple(sorted(name for name in names if "/" not in name))

    def stat(self, path: str) -> tuple[object, ...]:
        node = self.nodes[path]
        length = 0 if node.data is None else len(node.data)
        return (node.version, node.creations + node.deletions, node.owner, length, len(self.children(path)))


def outcome(result: object, owners: list[int]) -> object:
    """What a real tree answered, in the model's terms."""
    match result:
        case MultiFailed(index=index, cause=cause):
            return ("MultiFailed", index, type(cause).__name__)
        case TreeError():
            return type(result).__name__
        case Stat():
            owner = owners.index(result.ephemeral_owner) if result.ephemeral_owner else None
            return (result.version, result.cversion, owner, result.data_length, result.num_children)
        case DataAndStat(data, stat):
            return (data, outcome(stat, owners))
        case Children(names, stat):
            return (names, outcome(stat, owners))
        case Created(path, stat):
            return (path, outcome(stat, owners))
        case tuple():
            return tuple(outcome(item, owners) for item in result)
        case _:
            return result
