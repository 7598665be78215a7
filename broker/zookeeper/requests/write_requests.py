"""The requests that change the tree: decoded, checked in ZooKeeper's order, applied.

Each takes a zxid, also if it is refused. `multi` applies its operations under one zxid, all or none.

ZooKeeper: PrepRequestProcessor.pRequest2Txn, MultiOperationRecord, MultiResponse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from odradek.broker.zookeeper import jute
from odradek.broker.zookeeper.client import Client
from odradek.broker.zookeeper.codes import ERROR_RESULT, Code, OpCode, Permission, Refused
from odradek.broker.zookeeper.jute import Acl, JuteError, Reader
from odradek.broker.zookeeper.tree.acl_check import fixed_acls
from odradek.broker.zookeeper.tree.data_tree import SPECIAL_PATHS, DataTree
from odradek.controller.tree.metadata_tree import ANY_VERSION, NO_OWNER, BadArguments, check_path
from odradek.controller.tree.service_store import CONTAINER

NO_TTL: Final = -1

_PERSISTENT, _EPHEMERAL, _SEQUENTIAL, _EPHEMERAL_SEQUENTIAL, _CONTAINER, _TTL, _TTL_SEQUENTIAL = range(7)
"""The flags of a create request. ZooKeeper: CreateMode."""

_IS_SEQUENTIAL: Final = frozenset((_SEQUENTIAL, _EPHEMERAL_SEQUENTIAL, _TTL_SEQUENTIAL))
_IS_EPHEMERAL: Final = frozenset((_EPHEMERAL, _EPHEMERAL_SEQUENTIAL))
_HAS_TTL: Final = frozenset((_TTL, _TTL_SEQUENTIAL))


@dataclass(frozen=True, slots=True)
class Create:
    """create, create2, createContainer or createTTL. `ttl` in ms."""

    type: OpCode
    path: str
    data: bytes | None
    acls: list[Acl] | None
    flags: int
    ttl: int = NO_TTL


@dataclass(frozen=True, slots=True)
class Delete:
    """delete; `version` -1: any."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class SetData:
    """setData; `version` -1: any."""

    path: str | None
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """The check of a version, an operation of multi."""

    path: str | None
    version: int


@dataclass(frozen=True, slots=True)
class SetAcl:
    """setACL; `version` is that of the ACLs, -1: any."""

    path: str | None
    acls: list[Acl] | None
    version: int


OperationT = TypeVar("OperationT")

Write: TypeAlias = Create | Delete | SetData | Check | SetAcl


def decoded(kind: OpCode, reader: Reader) -> Write:
    """Raises JuteError."""
    match kind:
        case OpCode.CREATE | OpCode.CREATE2 | OpCode.CREATE_CONTAINER:
            return Create(kind, _path(reader), reader.buffer(), reader.acls(), reader.integer())
        case OpCode.CREATE_TTL:
            return Create(kind, _path(reader), reader.buffer(), reader.acls(), reader.integer(), reader.long())
        case OpCode.DELETE:
            return Delete(_path(reader), reader.integer())
        case OpCode.SET_DATA:
            return SetData(reader.string(), reader.buffer(), reader.integer())
        case OpCode.CHECK:
            return Check(reader.string(), reader.integer())
        case OpCode.SET_ACL:
            return SetAcl(reader.string(), reader.acls(), reader.integer())
    raise JuteError(f"{kind} is not a write")


def _path(reader: Reader) -> str:
    path = reader.string()
    if path is None:  # a NullPointerException in ZooKeeper, which answers it like bytes that it cannot decode
        raise JuteError("the path is null")
    return path


def apply_write(tree: DataTree, client: Client, write: Write) -> bytes:
    """Apply one write under the zxid that was taken for it; returns the body of its answer. Raises Refused."""
    match write:
        case Create():
            return _create(tree, client, write)
        case Delete():
            return _delete(tree, client, write)
        case SetData():
            return _set_data(tree, client, write)
        case Check():
            return _check(tree, client, write)
        case SetAcl():
            return _set_acl(tree, client, write)


def _create(tree: DataTree, client: Client, create: Create) -> bytes:
    if not _PERSISTENT <= create.flags <= _TTL_SEQUENTIAL:
        raise Refused(Code.BAD_ARGUMENTS)
    if create.flags in _HAS_TTL:  # `extendedTypesEnabled` is off, as by default
        raise Refused(Code.UNIMPLEMENTED)
    if create.ttl >= 0:
        raise Refused(Code.BAD_ARGUMENTS)
    parent_path = _parent_of(create.path)
    acls = fixed_acls(create.acls, client.identities)
    parent = tree.require(parent_path)
    tree.check(client, parent_path, Permission.CREATE)
    path = create.path
    if create.flags in _IS_SEQUENTIAL:
        path += f"{parent.children_created:010d}"
    _check_path(path)
    if tree.find(path) is not None:
        raise Refused(Code.NODE_EXISTS)
    if parent.ephemeral_owner not in (NO_OWNER, CONTAINER):
        raise Refused(Code.NO_CHILDREN_FOR_EPHEMERALS)
    owner = NO_OWNER
    if create.type is OpCode.CREATE_CONTAINER:
        owner = CONTAINER
    elif create.flags in _IS_EPHEMERAL:
        owner = client.session_id
    node = tree.create(path, create.data, acls, owner)
    return jute.string(path) + (b"" if create.type is OpCode.CREATE else tree.stat(path, node))


def _delete(tree: DataTree, client: Client, delete: Delete) -> bytes:
    path = delete.path
    if path in SPECIAL_PATHS:
        raise Refused(Code.BAD_ARGUMENTS)
    parent_path = _parent_of(path)
    tree.require(parent_path)
    tree.check(client, parent_path, Permission.DELETE)
    node = tree.require(path)
    _expect(delete.version, node.version)
    if node.num_children:
        raise Refused(Code.NOT_EMPTY)
    tree.delete(path)
    return b""


def _set_data(tree: DataTree, client: Client, request: SetData) -> bytes:
    path = _check_path(request.path)
    node = tree.require(path)
    tree.check(client, path, Permission.WRITE)
    _expect(request.version, node.version)
    tree.set_data(path, node, request.data)
    return tree.stat(path, node)


def _check(tree: DataTree, client: Client, check: Check) -> bytes:
    path = _check_path(check.path)
    node = tree.require(path)
    tree.check(client, path, Permission.READ)
    _expect(check.version, node.version)
    return b""


def _set_acl(tree: DataTree, client: Client, request: SetAcl) -> bytes:
    path = _check_path(request.path)
    acls = fixed_acls(request.acls, client.identities)
    node = tree.require(path)
    tree.check(client, path, Permission.ADMIN)
    version = tree.acl_version(path)
    _expect(request.version, version)
    tree.set_acls(path, acls, version + 1)
    return tree.stat(path, node)


def _parent_of(path: str) -> str:
    slash = path.rfind("/")
    if slash < 0 or "\0" in path:
        raise Refused(Code.BAD_ARGUMENTS)
    return path[:slash]


def _check_path(path: str | None) -> str:
    try:
        if path:
            check_path(path)
            return path
    except BadArguments:
        pass
    raise Refused(Code.BAD_ARGUMENTS)


def _expect(expected: int, version: int) -> None:
    if expected not in (ANY_VERSION, version):
        raise Refused(Code.BAD_VERSION)


# Multi

IN_MULTI: Final = frozenset(
    (
        OpCode.CREATE,
        OpCode.CREATE2,
        OpCode.CREATE_CONTAINER,
        OpCode.CREATE_TTL,
        OpCode.DELETE,
        OpCode.SET_DATA,
        OpCode.CHECK,
    )
)


def decoded_multi(reader: Reader) -> list[tuple[OpCode, Write]]:
    """Raises JuteError, also for an operation that a multi cannot have and for flags that no node can have."""

    def operation(kind: OpCode) -> tuple[OpCode, Write]:
        if kind not in IN_MULTI:
            raise JuteError(f"{kind!r} cannot be in a multi")
        write = decoded(kind, reader)
        if isinstance(write, Create) and not _PERSISTENT <= write.flags <= _TTL_SEQUENTIAL:
            raise JuteError(f"no node can have the flags {write.flags}")
        if isinstance(write, Create) and write.flags == _CONTAINER:
            write = Create(OpCode.CREATE_CONTAINER, write.path, write.data, write.acls, write.flags)
        return kind, write

    return operations_of(reader, operation)


def operations_of(reader: Reader, operation: Callable[[OpCode], OperationT]) -> list[OperationT]:
    """The operations of a multi or multiRead, each decoded by `operation`. Raises JuteError."""
    operations: list[OperationT] = []
    while True:
        kind, is_done, _ = reader.integer(), reader.boolean(), reader.integer()
        if is_done:
            return operations
        operations.append(operation(op_code(kind)))


def op_code(number: int) -> OpCode:
    """Raises JuteError."""
    try:
        return OpCode(number)
    except ValueError:
        raise JuteError(f"{number} is no request") from None


def apply_multi(tree: DataTree, client: Client, operations: list[tuple[OpCode, Write]]) -> bytes:
    """The results of all operations, or the errors of all: OK before the one that is refused, its own, and -2 after."""
    savepoint = tree.savepoint()
    results: list[bytes] = []
    for index, (kind, write) in enumerate(operations):
        try:
            body = apply_write(tree, client, write)
        except Refused as refused:
            tree.undo(savepoint)
            codes = [Code.OK] * index + [refused.code]
            codes += [Code.RUNTIME_INCONSISTENCY] * (len(operations) - len(codes))
            return multi_body([error_result(code) for code in codes])
        result_type = OpCode.CREATE2 if isinstance(write, Create) and write.type is not OpCode.CREATE else kind
        results.append(jute.multi_header(result_type, Code.OK) + body)
    tree.release()
    return multi_body(results)


def error_result(code: Code) -> bytes:
    return jute.multi_header(ERROR_RESULT, code) + jute.integer(code)


def multi_body(results: list[bytes]) -> bytes:
    return b"".join(results) + jute.multi_header(ERROR_RESULT, ERROR_RESULT, is_done=True)
