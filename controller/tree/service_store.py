"""What a server of ZooKeeper's protocol stores: nodes with their ACLs, and the sessions with their ephemeral nodes.

An ACL is stored as the bytes that its encoder made. A node without a row in `node_acl` is open to everybody, in version
0: nearly all nodes are. Sessions are stored so that a client whose server was restarted can come back to its session
within the time-out.

Each request that writes takes a zxid, also when it is refused, because ZooKeeper logs the refusal as a transaction.

ZooKeeper: DataTree, ZKDatabase, SessionTrackerImpl.initializeNextSessionId.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.tree.metadata_tree import parent_path
from odradek.controller.tree.node_table import Node, NodeTable, key_of
from odradek.controller.tree.private_file import make_private

if TYPE_CHECKING:
    from odradek.timer.clock import Clock

SERVICE_FILE: Final = "odradek-zookeeper.db"
"""The file name of the database in the data directory of the service."""

CONTAINER: Final = -(2**63)
"""The owner of a container node. ZooKeeper: EphemeralType.CONTAINER_EPHEMERAL_OWNER."""

PASSWORD_BYTES: Final = 16

_SERVER_ID: Final = 1
"""The first byte of session ids, as in a standalone ZooKeeper."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS node_acl (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    acl BLOB NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (parent, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (
    id INTEGER PRIMARY KEY,
    timeout_ms INTEGER NOT NULL,
    password BLOB NOT NULL
);
"""

_FIRST_NODES: Final = ("/zookeeper", "/zookeeper/config", "/zookeeper/quota")


class StoredSession(NamedTuple):
    session_id: int
    timeout_ms: int
    password: bytes


class StoreUnavailable(Exception):
    """The database cannot be opened."""


def open_store(path: str, clock: Clock, config_acl: bytes) -> ServiceStore:
    """Open or create the database at `path`. Raises StoreUnavailable."""
    import sqlite3

    try:
        make_private(path)
        return ServiceStore(path, clock, config_acl)
    except (sqlite3.Error, OSError, ValueError) as error:
        is_locked = getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY"
        reason = "it is in use by a running service" if is_locked else str(error)
        raise StoreUnavailable(f"cannot open {path}: {reason}") from error


class ServiceStore(NodeTable):
    """See the module. The caller begins and commits transactions, and takes a zxid before it writes."""

    def __init__(self, path: str, clock: Clock, config_acl: bytes) -> None:
        """`config_acl`: the ACL of /zookeeper/config, which nobody may write. Raises sqlite3.Error."""
        super().__init__(path, clock)
        self._run_script(_SCHEMA)
        if self.find(_FIRST_NODES[0]) is None:
            self._make_first_nodes(config_acl)
        earliest = (clock.time_ms() << 24 & (1 << 64) - 1) >> 8 | _SERVER_ID << 56
        self._sessions = max(self._sessions, earliest)
        self.commit()

    def _make_first_nodes(self, config_acl: bytes) -> None:
        """The nodes of a new ZooKeeper: no zxid, no time, and children that nobody has created."""
        for path in _FIRST_NODES:
            self._connection.execute(
                "INSERT INTO node VALUES (?, ?, x'', 0, 0, 0, 0, 0, 0, 0, 0, 0)",
                key_of(path),
            )
            self._connection.execute(
                "UPDATE node SET num_children = num_children + 1 WHERE parent = ? AND name = ?",
                key_of(parent_path(path)),
            )
        self._connection.execute("UPDATE node SET data = x'' WHERE parent = ''")
        self.write_acl("/zookeeper/config", config_acl, -1)

    # Transactions

    @property
    def zxid(self) -> int:
        """The last zxid."""
        return self._zxid

    def take_zxid(self) -> int:
        """The zxid of the next write."""
        self._zxid += 1
        return self._zxid

    # ACLs

    def acl(self, path: str) -> tuple[bytes | None, int]:
        """The ACL of a node, None if it is open to everybody, and its version."""
        row = self._connection.execute(
            "SELECT acl, version FROM node_acl WHERE parent = ? AND name = ?", key_of(path)
        ).fetchone()
        return (None, 0) if row is None else (row[0], row[1])

    def write_acl(self, path: str, acl: bytes, version: int) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO node_acl VALUES (?, ?, ?, ?)",
            (*key_of(path), acl, version),
        )

    def remove(self, path: str) -> None:
        super().remove(path)
        self._connection.execute("DELETE FROM node_acl WHERE parent = ? AND name = ?", key_of(path))

    # Sessions

    def add_session(self, timeout_ms: int) -> StoredSession:
        """A new session; its password is random."""
        session = StoredSession(self.start_session(), timeout_ms, os.urandom(PASSWORD_BYTES))
        self._connection.execute("INSERT INTO session VALUES (?, ?, ?)", session)
        return session

    def remove_session(self, session_id: int) -> None:
        self._connection.execute("DELETE FROM session WHERE id = ?", (session_id,))

    def sessions(self) -> list[StoredSession]:
        rows = self._connection.execute("SELECT id, timeout_ms, password FROM session ORDER BY id")
        return [StoredSession(*row) for row in rows.fetchall()]

    # Counts

    def number_of_nodes(self) -> int:
        """All nodes. ZooKeeper has the root in its table under two names, so this is one more."""
        (count,) = self._connection.execute("SELECT count(*) FROM node").fetchone()
        return int(count) + 1

    def number_below(self, path: str) -> int:
        """The nodes below a node, at all depths."""
        if path == "/":
            return self.number_of_nodes() - 2
        (count,) = self._connection.execute(
            "SELECT count(*) FROM node WHERE parent = ? OR (parent >= ? AND parent < ?)",
            (path, path + "/", path + "0"),  # "0" is the character after "/"
        ).fetchone()
        return int(count)

    def data_size(self) -> int:
        """The bytes of all paths and data. ZooKeeper: DataTree.approximateDataSize."""
        (size,) = self._connection.execute(
            "SELECT coalesce(sum(length(CAST(parent AS BLOB)) + 1 + length(CAST(name AS BLOB))"
            " + coalesce(length(data), 0)), 0) FROM node"
        ).fetchone()
        return int(size)

    def owners(self) -> list[int]:
        """The sessions that own ephemeral nodes."""
        rows = self._connection.execute(
            "SELECT DISTINCT ephemeral_owner FROM node WHERE ephemeral_owner <> 0 AND ephemeral_owner <> ?",
            (CONTAINER,),
        )
        return [owner for (owner,) in rows.fetchall()]

    def unused_containers(self) -> list[str]:
        """The containers that have had children and have none now. ZooKeeper: ContainerManager.getCandidates."""
        unused: list[tuple[str, Node | None]] = [(path, self.find(path)) for path in self.owned_by(CONTAINER)]
        return [
            path for path, node in unused if node is not None and node.num_children == 0 and node.children_created > 0
        ]
