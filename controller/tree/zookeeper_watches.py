"""The watchers of each node, and the node's transaction id when they were set.

The server drops the watches of a lost connection. When the session continues over another connection, every watched
node is read again, which sets its watch again. If a node has changed meanwhile, its watchers are called as if the
server had sent the event.

Corresponds to the watch manager of ZooKeeper's client, which lets the server compare.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from odradek.controller.tree.metadata_tree import (
    Children,
    DataAndStat,
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    Stat,
    Watcher,
    WatchEvent,
    WatchEventType,
)

_ABSENT: Final = -1
"""The transaction id for a node that did not exist."""

_Watched: TypeAlias = dict[Watcher, None]


class Watches:
    """See the module. A watcher that is called is removed."""

    def __init__(self) -> None:
        self._data: dict[str, tuple[int, _Watched]] = {}
        """By path: the zxid of the last change of the data, and the watchers."""
        self._children: dict[str, tuple[int, _Watched]] = {}

    def note(self, operation: Operation[object], result: object) -> None:
        """Record the watcher of an operation if its result shows that the server has set the watch."""
        match operation, result:
            case GetData(path, watcher), DataAndStat(_, stat) if watcher is not None:
                self._wait(self._data, path, stat.mzxid, watcher)
            case Exists(path, watcher), Stat() | None if watcher is not None:
                self._wait(self._data, path, _mzxid(result), watcher)
            case GetChildren(path, watcher), Children(_, stat) if watcher is not None:
                self._wait(self._children, path, stat.pzxid, watcher)
            case _:
                pass

    @staticmethod
    def _wait(table: dict[str, tuple[int, _Watched]], path: str, zxid: int, watcher: Watcher) -> None:
        _, watchers = table.get(path, (zxid, {}))
        watchers[watcher] = None
        table[path] = (zxid, watchers)

    def fire(self, event: WatchEvent) -> list[Watcher]:
        """Remove and return the watchers of an event."""
        triggered: _Watched = {}
        if event.type is not WatchEventType.CHILDREN:
            triggered |= self._data.pop(event.path, (0, {}))[1]
        if event.type in (WatchEventType.CHILDREN, WatchEventType.DELETED):
            triggered |= self._children.pop(event.path, (0, {}))[1]
        return list(triggered)

    def clear(self) -> None:
        self._data.clear()
        self._children.clear()

    def rereads(self, watcher: Watcher) -> list[Operation[object]]:
        """The operations that set every watch again after a reconnect."""
        data: list[Operation[object]] = [Exists(path, watcher) for path in self._data]
        return data + [GetChildren(path, watcher) for path in self._children]

    def missed(self, operation: Operation[object], result: object) -> WatchEvent | None:
        """The event that was missed between setting the watch and the reread; None if the node has not changed."""
        match operation, result:
            case Exists(path), Stat() | None if path in self._data:
                before, now = self._data[path][0], _mzxid(result)
                if before == now:
                    return None
                if now == _ABSENT:
                    return WatchEvent(WatchEventType.DELETED, path)
                return WatchEvent(WatchEventType.CREATED if before == _ABSENT else WatchEventType.CHANGED, path)
            case GetChildren(path), Children(_, stat) if path in self._children:
                return None if stat.pzxid == self._children[path][0] else WatchEvent(WatchEventType.CHILDREN, path)
            case GetChildren(path), NoNode() if path in self._children:
                return WatchEvent(WatchEventType.DELETED, path)
        return None


def _mzxid(result: object) -> int:
    return result.mzxid if isinstance(result, Stat) else _ABSENT
