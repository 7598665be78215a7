"""Which watchers wait for which node, and what the node was like when they began to.

The server forgets the watches of a connection that drops. When the session goes on over another connection, every
watched node is read again, which sets its watch again; a node that is not as it was then has changed unseen, and its
watchers are told as if the server had.

Answers to the watch manager of ZooKeeper's client, which has the server compare.
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
"""In place of a transaction id: the node was not there."""

_Watched: TypeAlias = dict[Watcher, None]


class Watches:
    """See the module. One-shot: what fires is gone."""

    def __init__(self) -> None:
        self._data: dict[str, tuple[int, _Watched]] = {}
        """By path: the transaction that last changed the data, and who waits for the next."""
        self._children: dict[str, tuple[int, _Watched]] = {}

    def note(self, operation: Operation[object], result: object) -> None:
        """An operation was answered; if it carried a watcher and the server set the watch, wait for it."""
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
        """Take the watchers that an event is for."""
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
        """What to read again after a disconnect, with any watcher, so that every watch is set."""
        data: list[Operation[object]] = [Exists(path, watcher) for path in self._data]
        return data + [GetChildren(path, watcher) for path in self._children]

    def missed(self, operation: Operation[object], result: object) -> WatchEvent | None:
        """What happened to a node between its watch and its reread, if anything did."""
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
