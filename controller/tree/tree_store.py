"""ZooKeeper's rules for one operation of the port `MetadataTree`, over the rows of `NodeTable`.

`embedded_tree` has the thread, begins and ends transactions, and keeps the watches. This module has versions, counters,
ephemeral owners, sequence numbers, and the changes for watches. A refused operation raises its `TreeError` before it
has written anything; `Multi` runs in a savepoint.

Ephemeral nodes that exist when the file is opened belong to sessions of an earlier process and are deleted.
"""

from __future__ import annotations

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
    WriteOperation,
    WriteResult,
    check_path,
    parent_path,
)
from odradek.controller.tree.node_table import Node, NodeTable

if TYPE_CHECKING:
    from odradek.timer.clock import Clock

DATA_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest value of a node. Kafka's ZooKeeper client has the same limit; ZooKeeper's default is 1 MiB."""

Result: TypeAlias = "DataAndStat | Children | Created | Stat | tuple[WriteResult, ...] | None"


class TreeStore(NodeTable):
    """The nodes behind the port. `changes`: the changes since `take_changes`, in order."""

    def __init__(self, path: str, clock: Clock) -> None:
        """Open or create the database at `path`. Raises sqlite3.Error, also if another process has it open."""
        super().__init__(path, clock)
        owners = self._connection.execute("SELECT DISTINCT ephemeral_owner FROM node WHERE ephemeral_owner <> 0")
        for (owner,) in owners.fetchall():
            self.end_session(owner)
        self.commit()
        self.changes.clear()

    def end_session(self, session_id: int) -> None:
        """Delete the session's ephemeral nodes."""
        owned = self.owned_by(session_id)
        if owned:
            self._zxid += 1
        for path in owned:
            self._delete(Delete(path))

    def apply(self, operation: Operation[object], session_id: int) -> Result:
        """Apply one operation for a session; raises its TreeError."""
        match operation:
            case GetData(path):
                node = self._require(path)
                return DataAndStat(node.data, node.stat())
            case Exists(path):
                check_path(path)
                found = self.find(path)
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
        number_of_changes = self.savepoint()
        results: list[WriteResult] = []
        for index, operation in enumerate(operations):
            try:
                result = self._write(operation, session_id)
            except TreeError as error:
                self.undo(number_of_changes)
                raise MultiFailed(index, error) from error
            results.append(result.path if isinstance(result, Created) else result)
        self.release()
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
        parent = self.find(parent_path(create.path))
        if parent is None:
            raise NoNode(create.path)
        path = f"{create.path}{parent.children_created:010d}" if create.mode.is_sequential else create.path
        if self.find(path) is not None:
            raise NodeExists(path)
        if parent.ephemeral_owner != NO_OWNER:
            raise NoChildrenForEphemerals(path)
        owner = session_id if create.mode.is_ephemeral else NO_OWNER
        return Created(path, self.insert(path, create.data, owner).stat())

    def _set(self, operation: SetData) -> Stat:
        _check_size(operation.path, operation.data)
        node = self._require(operation.path)
        _expect(operation.path, operation.version, node.version)
        self.update(operation.path, node, operation.data)
        return node.stat()

    def _delete(self, operation: Delete) -> None:
        if operation.path == "/":
            raise BadArguments("/", "the root cannot be deleted")
        node = self._require(operation.path)
        _expect(operation.path, operation.version, node.version)
        if node.num_children:
            raise NotEmpty(operation.path)
        self.remove(operation.path)

    def _children(self, path: str) -> Children:
        stat = self._require(path).stat()
        return Children(self.names_of_children(path), stat)

    def _require(self, path: str) -> Node:
        check_path(path)
        node = self.find(path)
        if node is None:
            raise NoNode(path)
        return node


def _expect(path: str, expected: int, version: int) -> None:
    if expected not in (ANY_VERSION, version):
        raise BadVersion(path, f"{path} has version {version}, not {expected}")


def _check_size(path: str, data: bytes | None) -> None:
    if data is not None and len(data) > DATA_BYTES_MAX:
        raise BadArguments(path, f"{len(data)} bytes are more than the {DATA_BYTES_MAX} a node can hold")
