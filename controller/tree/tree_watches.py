"""The watches of the clients of a metadata tree, by path. A watch is removed by the change that fires it.

Several batches are applied in one transaction, and watches fire before it is committed: `commit` makes that final,
`rollback` sets the fired watches again. Not thread-safe.
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
        """The watches that the current transaction has fired, with their table and path."""

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
        """Remove and return the watches that a change fires."""
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
        """Set the fired watches again: the changes were undone."""
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
