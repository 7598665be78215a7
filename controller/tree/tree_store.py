"""The nodes of the embedded metadata tree, in one SQLite table.

Synchronous and single-threaded: `embedded_tree` has the thread, begins and ends transactions, and keeps the watches.
This module implements ZooKeeper's rules for one operation: versions, counters, ephemeral owners, sequence numbers, and
the changes for watches. A refused operation raises its `TreeError` before it has written anything; `Multi` runs in a
savepoint.

The zxid and the session id are counters. They are stored in the transaction that increments them and so never repeat.
Ephemeral nodes that exist when the file is opened belong to sessions of an earlier process and are deleted.

`synchronous=FULL` with a write-ahead log: one fsync per transaction; every returned result survives a power failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.controller.tree.metadata_tree import (
    ANY_VERSION,
    NO_OWNER,
    BadArguments,
    BadVersion,
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
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SetData,
    Stat,
    TreeError,
    WatchEvent,
    WatchEventType,
    WriteOperation,
    WriteResult,
    check_path,
    parent_path,
)

if TYPE_CHECKING:
    import sqlite3

    from odradek.timer.clock import Clock

DATA_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest value of a node. Kafka's ZooKeeper client has the same limit; ZooKeeper's default is 1 MiB."""

_APPLICATION_ID: Final = 0x4F647261
_SCHEMA_VERSION: Final = 1
_LOCK_TIMEOUT_S: Final = 0.2

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

Result: TypeAlias = "DataAndStat | Children | Created | Stat | tuple[WriteResult, ...] | None"


@dataclass(slots=True)
class _Node:
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


class TreeStore:
    """The table of nodes. `changes`: the changes since `take_changes`, in order."""

    def __init__(self, path: str, clock: Clock) -> None:
        """Open or create the database at `path`. Raises sqlite3.Error, also if another process has it open."""
        import sqlite3

        self._clock = clock
        self._connection: sqlite3.Connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
        self.changes: list[WatchEvent] = []
        execute = self._connection.execute
        # Only one process opens the file, so SQLite needs no shared memory and takes its lock only once.
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute("BEGIN IMMEDIATE")
        self._create_schema()
        self._zxid = self._counter("zxid")
        self._stored_zxid = self._zxid
        self._sessions = self._counter("session")
        for (owner,) in execute("SELECT DISTINCT ephemeral_owner FROM node WHERE ephemeral_owner <> 0").fetchall():
            self.end_session(owner)
        self.commit()
        self.changes.clear()

    def _create_schema(self) -> None:
        import sqlite3

        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        elif version != _SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"metadata schema version {version} is not {_SCHEMA_VERSION}")

    def _counter(self, name: str) -> int:
        (value,) = self._connection.execute("SELECT value FROM counter WHERE name = ?", (name,)).fetchone()
        return int(value)

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

    def close(self) -> None:
        self._connection.close()

    def take_changes(self) -> list[WatchEvent]:
        changes = self.changes
        self.changes = []
        return changes

    def start_session(self) -> int:
        """A new session id."""
        self._sessions += 1
        self._connection.execute("UPDATE counter SET value = ? WHERE name = 'session'", (self._sessions,))
        return self._sessions

    def end_session(self, session_id: int) -> None:
        """Delete the session's ephemeral nodes."""
        owned = self._connection.execute(
            "SELECT parent, name FROM node WHERE ephemeral_owner = ? ORDER BY parent, name", (session_id,)
        ).fetchall()
        if owned:
            self._zxid += 1
        for parent, name in owned:
            self._delete(Delete("/" + name if parent == "/" else f"{parent}/{name}"))

    def apply(self, operation: Operation[object], session_id: int) -> Result:
        """Apply one operation for a session; raises its TreeError."""
        match operation:
            case GetData(path):
                node = self._require(path)
                return DataAndStat(node.data, node.stat())
            case Exists(path):
                check_path(path)
                found = self._find(path)
                return None if found is None else found.stat()
            case GetChildren(path):
                return self._children(path)
            case _:
                return self._in_new_transaction(operation, session_id)

    def _in_new_transaction(self, operation: Operation[object], session_id: int) -> Result:
        """Apply a write with a new zxid. A refused write changes nothing and needs no fsync."""
        self._zxid += 1
        try:
            match operation:
                case Multi(operations):
                    return self._multi(operations, session_id)
                case Create() | SetData() | Delete() | Check():
                    return self._write(operation, session_id)
                case _:
                    raise TypeError(f"unknown operation {operation!r}")
        except TreeError:
            self._zxid -= 1
            raise

    def _multi(self, operations: tuple[WriteOperation, ...], session_id: int) -> tuple[WriteResult, ...]:
        number_of_changes = len(self.changes)
        results: list[WriteResult] = []
        self._connection.execute("SAVEPOINT multi")
        for index, operation in enumerate(operations):
            try:
                result = self._write(operation, session_id)
            except TreeError as error:
                self._connection.execute("ROLLBACK TO multi")
                self._connection.execute("RELEASE multi")
                del self.changes[number_of_changes:]
                raise MultiFailed(index, error) from error
            results.append(result.path if isinstance(result, Created) else result)
        self._connection.execute("RELEASE multi")
        return tuple(results)

    def _write(self, operation: WriteOperation, session_id: int) -> Created | Stat | None:
        match operation:
            case Create():
                return self._create(operation, session_id)
            case SetData():
                return self._set(operation)
            case Delete():
                self._delete(operation)
            case Check(path, version):
                _expect(path, version, self._require(path).version)
        return None

    def _create(self, create: Create, session_id: int) -> Created:
        check_path(create.path, is_sequential=create.mode.is_sequential)
        _check_size(create.path, create.data)
        if create.path == "/":
            raise NodeExists(create.path)
        parent_of_path = parent_path(create.path)
        parent = self._find(parent_of_path)
        if parent is None:
            raise NoNode(create.path)
        path = f"{create.path}{parent.children_created:010d}" if create.mode.is_sequential else create.path
        if self._find(path) is not None:
            raise NodeExists(path)
        if parent.ephemeral_owner != NO_OWNER:
            raise NoChildrenForEphemerals(path)
        zxid = self._zxid
        now_ms = self._clock.time_ms()
        owner = session_id if create.mode.is_ephemeral else NO_OWNER
        node = _Node(create.data, 0, 0, 0, zxid, zxid, zxid, now_ms, now_ms, owner)
        self._connection.execute(
            "INSERT INTO node VALUES (?, ?, ?, 0, 0, 0, ?, ?, ?, ?, ?, ?)",
            (*_key(path), create.data, zxid, zxid, zxid, now_ms, now_ms, owner),
        )
        self._connection.execute(
            "UPDATE node SET children_created = children_created + 1, num_children = num_children + 1, pzxid = ? "
            "WHERE parent = ? AND name = ?",
            (zxid, *_key(parent_of_path)),
        )
        self.changes.append(WatchEvent(WatchEventType.CREATED, path))
        self.changes.append(WatchEvent(WatchEventType.CHILDREN, parent_of_path))
        return Created(path, node.stat())

    def _set(self, operation: SetData) -> Stat:
        _check_size(operation.path, operation.data)
        node = self._require(operation.path)
        _expect(operation.path, operation.version, node.version)
        node.data = operation.data
        node.version += 1
        node.mzxid = self._zxid
        node.mtime_ms = self._clock.time_ms()
        self._connection.execute(
            "UPDATE node SET data = ?, version = ?, mzxid = ?, mtime_ms = ? WHERE parent = ? AND name = ?",
            (node.data, node.version, node.mzxid, node.mtime_ms, *_key(operation.path)),
        )
        self.changes.append(WatchEvent(WatchEventType.CHANGED, operation.path))
        return node.stat()

    def _delete(self, operation: Delete) -> None:
        if operation.path == "/":
            raise BadArguments("/", "the root cannot be deleted")
        node = self._require(operation.path)
        _expect(operation.path, operation.version, node.version)
        if node.num_children:
            raise NotEmpty(operation.path)
        parent_of_path = parent_path(operation.path)
        self._connection.execute("DELETE FROM node WHERE parent = ? AND name = ?", _key(operation.path))
        self._connection.execute(
            "UPDATE node SET num_children = num_children - 1, pzxid = ? WHERE parent = ? AND name = ?",
            (self._zxid, *_key(parent_of_path)),
        )
        self.changes.append(WatchEvent(WatchEventType.DELETED, operation.path))
        self.changes.append(WatchEvent(WatchEventType.CHILDREN, parent_of_path))

    def _children(self, path: str) -> Children:
        stat = self._require(path).stat()
        rows = self._connection.execute("SELECT name FROM node WHERE parent = ? ORDER BY name", (path,)).fetchall()
        return Children(tuple(name for (name,) in rows), stat)

    def _find(self, path: str) -> _Node | None:
        row = self._connection.execute(_SELECT, _key(path)).fetchone()
        return None if row is None else _Node(*row)

    def _require(self, path: str) -> _Node:
        check_path(path)
        node = self._find(path)
        if node is None:
            raise NoNode(path)
        return node


def _key(path: str) -> tuple[str, str]:
    """A node's primary key. The root has the parent "", which no other node has."""
    return ("", "") if path == "/" else (parent_path(path), path[path.rindex("/") + 1 :])


def _expect(path: str, expected: int, version: int) -> None:
    if expected not in (ANY_VERSION, version):
        raise BadVersion(path, f"{path} has version {version}, not {expected}")


def _check_size(path: str, data: bytes | None) -> None:
    if data is not None and len(data) > DATA_BYTES_MAX:
        raise BadArguments(path, f"{len(data)} bytes are more than the {DATA_BYTES_MAX} a node can hold")
