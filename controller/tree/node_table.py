"""The rows of a metadata tree: one SQLite table of nodes, with counters, transactions and the changes for watches.

Synchronous and single-threaded. This module keeps ZooKeeper's numbers (versions, zxids, the counts of children) and
checks nothing: `TreeStore` has the rules of the port `MetadataTree`, `ServiceStore` has what a server of ZooKeeper's
protocol stores besides.

The zxid and the session id are counters. They are stored in the transaction that increments them and so never repeat.

`synchronous=FULL` with a write-ahead log: one fsync per transaction; every returned result survives a power failure.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.controller.tree.metadata_tree import Stat, WatchEvent, WatchEventType, parent_path

if TYPE_CHECKING:
    import sqlite3

    from odradek.timer.clock import Clock

_APPLICATION_ID: Final = 0x4F647261
_SCHEMA_VERSION: Final = 1
_LOCK_TIMEOUT_S: Final = 0.2

NAMES_KEPT_FROM: Final = 256
"""A node with so many children keeps their names in memory: the controller reads all topics after each change."""

_SCHEMA: Final = """
CREATE TABLE node (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB,
    version INTEGER NOT NULL,
    children_created INTEGER NOT NULL,
    num_children INTEGER NOT NULL,
    czxid INTEGER NOT NULL,
    mzxid INTEGER NOT NULL,
    pzxid INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL,
    mtime_ms INTEGER NOT NULL,
    ephemeral_owner INTEGER NOT NULL,
    PRIMARY KEY (parent, name)
) WITHOUT ROWID;
CREATE INDEX ephemeral ON node (ephemeral_owner) WHERE ephemeral_owner <> 0;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('zxid', 0), ('session', 0);
INSERT INTO node VALUES ('', '', NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0);
"""

_SELECT: Final = (
    "SELECT data, version, children_created, num_children, czxid, mzxid, pzxid, ctime_ms, mtime_ms, ephemeral_owner "
    "FROM node WHERE parent = ? AND name = ?"
)


@dataclass(slots=True)
class Node:
    """One row of the table."""

    data: bytes | None
    version: int
    children_created: int
    num_children: int
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    ephemeral_owner: int

    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            pzxid=self.pzxid,
            ctime_ms=self.ctime_ms,
            mtime_ms=self.mtime_ms,
            version=self.version,
            # ZooKeeper's cversion is the number of created plus deleted children.
            cversion=2 * self.children_created - self.num_children,
            ephemeral_owner=self.ephemeral_owner,
            data_length=0 if self.data is None else len(self.data),
            num_children=self.num_children,
        )


class NodeTable:
    """The table of nodes. `changes`: the changes since `take_changes`, in order."""

    def __init__(self, path: str, clock: Clock) -> None:
        """Open or create the database at `path` and begin a transaction, which the subclass commits.

        Raises sqlite3.Error, also if another process has the database open.
        """
        import sqlite3

        self._clock = clock
        self._connection: sqlite3.Connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
        self.changes: list[WatchEvent] = []
        self._names: dict[str, list[str]] = {}
        """By path: the names of the children in order, of the nodes with many of them that were read."""
        try:
            self._begin()
        except BaseException:
            self._connection.close()
            raise

    def _begin(self) -> None:
        execute = self._connection.execute
        # Only one process opens the file, so SQLite needs no shared memory and takes its lock only once.
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute("BEGIN IMMEDIATE")
        self._create_schema()
        self._zxid = self._stored_zxid = self._counter("zxid")
        self._sessions = self._counter("session")

    def _create_schema(self) -> None:
        import sqlite3

        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._run_script(_SCHEMA)
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        elif version != _SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"metadata schema version {version} is not {_SCHEMA_VERSION}")

    def _run_script(self, script: str) -> None:
        """Run statements inside the transaction; sqlite3's own executescript would commit it first."""
        for statement in script.split(";\n"):
            if statement.strip():
                self._connection.execute(statement)

    def _counter(self, name: str) -> int:
        (value,) = self._connection.execute("SELECT value FROM counter WHERE name = ?", (name,)).fetchone()
        return int(value)

    # Transactions

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        if self._zxid != self._stored_zxid:
            self._connection.execute("UPDATE counter SET value = ? WHERE name = 'zxid'", (self._zxid,))
            self._stored_zxid = self._zxid
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Undo all changes since `begin`, also in memory. SQLite may have rolled its transaction back already."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._zxid = self._stored_zxid = self._counter("zxid")
        self._sessions = self._counter("session")
        self.changes.clear()
        self._names.clear()

    def close(self) -> None:
        self._connection.close()

    def take_changes(self) -> list[WatchEvent]:
        changes = self.changes
        self.changes = []
        return changes

    def savepoint(self) -> int:
        """Begin a part that `undo` takes back; returns the number of changes before it."""
        self._connection.execute("SAVEPOINT multi")
        return len(self.changes)

    def release(self) -> None:
        self._connection.execute("RELEASE multi")

    def undo(self, number_of_changes: int) -> None:
        """Take back what was done since `savepoint`."""
        self._connection.execute("ROLLBACK TO multi")
        self._connection.execute("RELEASE multi")
        del self.changes[number_of_changes:]
        self._names.clear()

    # Rows

    def find(self, path: str) -> Node | None:
        row = self._connection.execute(_SELECT, key_of(path)).fetchone()
        return None if row is None else Node(*row)

    def names_of_children(self, path: str) -> tuple[str, ...]:
        kept = self._names.get(path)
        if kept is not None:
            return tuple(kept)
        rows = self._connection.execute("SELECT name FROM node WHERE parent = ? ORDER BY name", (path,)).fetchall()
        names = [name for (name,) in rows]
        if len(names) >= NAMES_KEPT_FROM:
            self._names[path] = names
        return tuple(names)

    def owned_by(self, session_id: int) -> list[str]:
        """The paths of the session's ephemeral nodes."""
        rows = self._connection.execute(
            "SELECT parent, name FROM node WHERE ephemeral_owner = ? ORDER BY parent, name", (session_id,)
        ).fetchall()
        return ["/" + name if parent == "/" else f"{parent}/{name}" for parent, name in rows]

    def insert(self, path: str, data: bytes | None, owner: int) -> Node:
        """Add a row below an existing one, under the current zxid."""
        zxid = self._zxid
        now_ms = self._clock.time_ms()
        node = Node(data, 0, 0, 0, zxid, zxid, zxid, now_ms, now_ms, owner)
        parent = parent_path(path)
        key = key_of(path)
        self._connection.execute(
            "INSERT INTO node VALUES (?, ?, ?, 0, 0, 0, ?, ?, ?, ?, ?, ?)",
            (*key, data, zxid, zxid, zxid, now_ms, now_ms, owner),
        )
        if (names := self._names.get(parent)) is not None:
            insort(names, key[1])  # SQLite compares UTF-8, Python code points: the order is the same
        self._connection.execute(
            "UPDATE node SET children_created = children_created + 1, num_children = num_children + 1, pzxid = ? "
            "WHERE parent = ? AND name = ?",
            (zxid, *key_of(parent)),
        )
        self.changes.append(WatchEvent(WatchEventType.CREATED, path))
        self.changes.append(WatchEvent(WatchEventType.CHILDREN, parent))
        return node

    def update(self, path: str, node: Node, data: bytes | None) -> None:
        """Write the data of a row and of `node`, which was read from it."""
        node.data = data
        node.version += 1
        node.mzxid = self._zxid
        node.mtime_ms = self._clock.time_ms()
        self._connection.execute(
            "UPDATE node SET data = ?, version = ?, mzxid = ?, mtime_ms = ? WHERE parent = ? AND name = ?",
            (node.data, node.version, node.mzxid, node.mtime_ms, *key_of(path)),
        )
        self.changes.append(WatchEvent(WatchEventType.CHANGED, path))

    def remove(self, path: str) -> None:
        """Delete a row that has no children."""
        parent = parent_path(path)
        key = key_of(path)
        self._connection.execute("DELETE FROM node WHERE parent = ? AND name = ?", key)
        if (names := self._names.get(parent)) is not None:
            del names[bisect_left(names, key[1])]
        self._names.pop(path, None)  # a node that had many children
        self._connection.execute(
            "UPDATE node SET num_children = num_children - 1, pzxid = ? WHERE parent = ? AND name = ?",
            (self._zxid, *key_of(parent)),
        )
        self.changes.append(WatchEvent(WatchEventType.DELETED, path))
        self.changes.append(WatchEvent(WatchEventType.CHILDREN, parent))

    def start_session(self) -> int:
        """A new session id."""
        self._sessions += 1
        self._connection.execute("UPDATE counter SET value = ? WHERE name = 'session'", (self._sessions,))
        return self._sessions


def key_of(path: str) -> tuple[str, str]:
    """A node's primary key. The root has the parent "", which no other node has."""
    return ("", "") if path == "/" else (parent_path(path), path[path.rindex("/") + 1 :])
