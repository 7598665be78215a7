"""The watches of the connections on paths: standard, persistent, and persistent for all that is below a path.

A server has two of these tables, for data and for children. A connection has at most one watch on a path in each, and
setting a standard watch over a persistent one makes it a standard one, as in ZooKeeper 3.8.

ZooKeeper: WatchManager, WatcherModeManager, PathParentIterator.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, Generic, TypeVar

from odradek.broker.zookeeper.codes import EventType, LimitExceeded
from odradek.controller.tree.metadata_tree import parent_path

WatcherT = TypeVar("WatcherT")

WATCH_BYTES: Final = 256
"""The memory of a watch besides its path, about."""

WATCHES_BYTES_MAX: Final = 128 << 20
"""The memory of the watches of one connection in one table: half a million of them on short paths."""


class WatcherMode(Enum):
    STANDARD = "standard"
    PERSISTENT = "persistent"
    PERSISTENT_RECURSIVE = "persistent recursive"


class WatchManager(Generic[WatcherT]):
    """One table of watches."""

    def __init__(self) -> None:
        self._by_path: dict[str, dict[WatcherT, WatcherMode]] = {}
        self._by_watcher: dict[WatcherT, dict[str, None]] = {}
        self._bytes: dict[WatcherT, int] = {}
        self._recursive = 0

    def add(self, path: str, watcher: WatcherT, mode: WatcherMode = WatcherMode.STANDARD) -> None:
        """Raises LimitExceeded."""
        if path not in self._by_watcher.get(watcher, ()):
            used = self._bytes.get(watcher, 0) + _cost(path)
            if used > WATCHES_BYTES_MAX:
                raise LimitExceeded(f"its watches take more than {WATCHES_BYTES_MAX} bytes")
            self._bytes[watcher] = used
        watchers = self._by_path.setdefault(path, {})
        self._count(watchers.get(watcher), -1)
        watchers[watcher] = mode
        self._count(mode, 1)
        self._by_watcher.setdefault(watcher, {})[path] = None

    def remove(self, path: str, watcher: WatcherT) -> bool:
        """Whether there was a watch."""
        watchers = self._by_path.get(path, {})
        if watcher not in watchers:
            return False
        self._count(watchers.pop(watcher), -1)
        del self._by_watcher[watcher][path]
        self._bytes[watcher] -= _cost(path)
        if not watchers:
            del self._by_path[path]
        if not self._by_watcher[watcher]:
            del self._by_watcher[watcher], self._bytes[watcher]
        return True

    def remove_watcher(self, watcher: WatcherT) -> None:
        """Remove all watches of a connection."""
        for path in list(self._by_watcher.get(watcher, ())):
            self.remove(path, watcher)

    def contains(self, path: str, watcher: WatcherT) -> bool:
        """Whether a check of watches succeeds. ZooKeeper 3.8 looks at the watches of all connections on the path."""
        return path in self._by_path or self._mode(path, watcher) is WatcherMode.PERSISTENT_RECURSIVE

    def _mode(self, path: str, watcher: WatcherT) -> WatcherMode | None:
        return self._by_path.get(path, {}).get(watcher)

    def trigger(self, path: str, event: EventType) -> list[WatcherT]:
        """The connections that get an event; their standard watches on the path are removed."""
        watchers: dict[WatcherT, None] = {}
        for place in self._places(path):
            for watcher, mode in list(self._by_path.get(place, {}).items()):
                if mode is WatcherMode.PERSISTENT_RECURSIVE:
                    if event is not EventType.CHILDREN_CHANGED:
                        watchers[watcher] = None
                elif place == path:
                    watchers[watcher] = None
                    if mode is WatcherMode.STANDARD:
                        self.remove(path, watcher)
        return list(watchers)

    def _places(self, path: str) -> Iterator[str]:
        """The path, and the paths above it while a recursive watch is somewhere."""
        yield path
        while self._recursive and path != "/":
            path = parent_path(path)
            yield path

    def _count(self, mode: WatcherMode | None, change: int) -> None:
        if mode is WatcherMode.PERSISTENT_RECURSIVE:
            self._recursive += change

    # For the four-letter words

    def by_path(self) -> dict[str, list[WatcherT]]:
        return {path: list(watchers) for path, watchers in self._by_path.items()}

    def by_watcher(self) -> dict[WatcherT, list[str]]:
        return {watcher: list(paths) for watcher, paths in self._by_watcher.items()}


def _cost(path: str) -> int:
    return WATCH_BYTES + len(path)
