"""The watches of a metadata tree's clients: one-shot, by path, taken by the change they waited for.

A store that applies several batches in one transaction takes watches before it knows whether the transaction stays:
`commit` or `rollback` ends it. Not safe for threads.
"""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

from odradek.controller.tree.metadata_tree import (
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    TreeError,
    Watcher,
    WatchEvent,
    WatchEventType,
)

ClientT = TypeVar("ClientT")

_Table: TypeAlias = dict[str, dict[tuple[ClientT, Watcher], None]]


class TreeWatches(Generic[ClientT]):
    """See the module."""

    def __init__(self) -> None:
        self._data: _Table[ClientT] = {}
        self._children: _Table[ClientT] = {}
        self._fired: list[tuple[_Table[ClientT], str, dict[tuple[ClientT, Watcher], None]]] = []
        """What the transaction at hand has taken, and from which table."""

    def watch(self, client: ClientT, operation: Operation[object], error: TreeError | None) -> None:
        match operation:
            case GetData(path, watcher) if watcher is not None and error is None:
                self._data.setdefault(path, {})[(client, watcher)] = None
            case Exists(path, watcher) if watcher is not None and (error is None or isinstance(error, NoNode)):
                self._data.setdefault(path, {})[(client, watcher)] = None
            case GetChildren(path, watcher) if watcher is not None and error is None:
                self._children.setdefault(path, {})[(client, watcher)] = None
            case _:
                pass

    def fire(self, event: WatchEvent) -> list[tuple[ClientT, Watcher, WatchEvent]]:
        """Take the watches that a change sets off."""
        triggered: dict[tuple[ClientT, Watcher], None] = {}
        if event.type is not WatchEventType.CHILDREN:
            triggered |= self._take(self._data, event.path)
        if event.type in (WatchEventType.CHILDREN, WatchEventType.DELETED):
            triggered |= self._take(self._children, event.path)
        return [(client, watcher, event) for client, watcher in triggered]

    def _take(self, table: _Table[ClientT], path: str) -> dict[tuple[ClientT, Watcher], None]:
        taken = table.pop(path, {})
        if taken:
            self._fired.append((table, path, taken))
        return taken

    def commit(self) -> None:
        self._fired.clear()

    def rollback(self) -> None:
        """What would have set them off has not happened."""
        for table, path, taken in self._fired:
            table.setdefault(path, {}).update(taken)
        self._fired.clear()

    def forget(self, client: ClientT) -> None:
        for table in (self._data, self._children):
            for path in list(table):
                kept = {key: None for key in table[path] if key[0] is not client}
                if kept:
                    table[path] = kept
                else:
                    del table[path]
