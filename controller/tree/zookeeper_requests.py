"""Converts operations of the metadata tree into ZooKeeper requests, and ZooKeeper's responses into results.

Data is passed unchanged. Kafka distinguishes null from empty data, and kazoo's own methods do not create nodes with
null data, so the requests are made directly. The chroot is added to and removed from the paths here.

With `zookeeper.set.acl` only the creator of a node may change it, and everyone may read it unless it holds secrets.

Kafka: ZkData.defaultAcls, ZkData.sensitivePath.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from kazoo import exceptions
from kazoo.protocol import serialization
from kazoo.protocol.states import ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from odradek.controller.tree.metadata_tree import (
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
    SessionExpired,
    SetData,
    Stat,
    TreeError,
    WriteOperation,
    WriteResult,
    check_path,
)
from odradek.controller.tree.zookeeper_multi_read import MultiRead, ReadTogether

SENSITIVE_PATHS: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
OPEN_PATH: Final = "/consumers"
"""Old consumers write their offsets here, without authentication."""

_REFUSALS: Final[dict[type[BaseException], type[TreeError]]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    exceptions.BadArgumentsError: BadArguments,
    exceptions.SessionExpiredError: SessionExpired,
    exceptions.ZookeeperError: TreeError,  # any other error of the server, as NoAuth
}

_NOT_THE_CAUSE: Final = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""The errors of the other operations of a failed transaction."""


class ZooKeeperRequests:
    """See the module. A request only contains whether there is a watcher."""

    def __init__(self, chroot: str, *, sets_acl: bool) -> None:
        self._chroot = chroot
        self._sets_acl = sets_acl

    def request(self, operation: Operation[object]) -> object:
        """The request for kazoo. Raises BadArguments for a path that ZooKeeper would refuse."""
        match operation:
            case GetData(path, watcher):
                return serialization.GetData(self._path(path), watcher is not None)
            case Exists(path, watcher):
                return serialization.Exists(self._path(path), watcher is not None)
            case GetChildren(path, watcher):
                return serialization.GetChildren2(self._path(path), watcher is not None)
            case Create(path, data, mode):
                flags = mode.is_ephemeral | mode.is_sequential << 1
                full_path = self._path(path, is_sequential=mode.is_sequential)
                return serialization.Create2(full_path, data, self._acl(path), flags)
            case ReadTogether(_, reads):
                return MultiRead(tuple(self._path(read.path) for read in reads))
            case Multi(operations):
                return serialization.Transaction([self._write(write) for write in operations])
            case SetData() | Delete() | Check():
                return self._write(operation)
        raise TypeError(f"not an operation of a tree: {operation!r}")

    def result(self, operation: Operation[object], answer: object) -> object:
        """The result of an operation, or its TreeError, for kazoo's value or exception."""
        if isinstance(answer, BaseException):
            return _refusal(answer, path_of(operation))
        match operation:
            case GetData():
                data, stat = cast("tuple[bytes | None, ZnodeStat]", answer)
                return DataAndStat(data, _stat(stat))
            case Exists():
                return None if answer is None else _stat(cast("ZnodeStat", answer))
            case GetChildren():
                names, stat = cast("tuple[list[str], ZnodeStat]", answer)
                return Children(tuple(sorted(names)), _stat(stat))
            case Create():
                path, stat = cast("tuple[str, ZnodeStat]", answer)
                return Created(self.without_chroot(path), _stat(stat))
            case Multi(operations):
                return self._multi_result(operations, cast("list[object]", answer))
            case ReadTogether(_, reads):
                answers = cast("list[object]", answer)
                return [self.result(read, each) for read, each in zip(reads, answers, strict=True)]
            case SetData():
                return _stat(cast("ZnodeStat", answer))
        return None

    def without_chroot(self, path: str) -> str:
        return path[len(self._chroot) :] or "/"

    def _write(self, operation: WriteOperation) -> object:
        match operation:
            case Create(path, data, mode):
                flags = mode.is_ephemeral | mode.is_sequential << 1
                full_path = self._path(path, is_sequential=mode.is_sequential)
                return serialization.Create(full_path, data, self._acl(path), flags)
            case SetData(path, data, version):
                return serialization.SetData(self._path(path), data, version)
            case Delete(path, version):
                return serialization.Delete(self._path(path), version)
            case Check(path, version):
                return serialization.CheckVersion(self._path(path), version)

    def _path(self, path: str, *, is_sequential: bool = False) -> str:
        check_path(path, is_sequential=is_sequential)
        return (self._chroot or "/") if path == "/" else self._chroot + path

    def _acl(self, path: str) -> list[object]:
        if not self._sets_acl or path == OPEN_PATH:
            return cast("list[object]", OPEN_ACL_UNSAFE)
        if path.startswith(SENSITIVE_PATHS):
            return cast("list[object]", CREATOR_ALL_ACL)
        return cast("list[object]", CREATOR_ALL_ACL + READ_ACL_UNSAFE)

    def _multi_result(self, operations: Sequence[WriteOperation], answers: list[object]) -> object:
        for index, answer in enumerate(answers):
            if isinstance(answer, Exception) and not isinstance(answer, _NOT_THE_CAUSE):
                return MultiFailed(index, _refusal(answer, operations[index].path))
        results: list[WriteResult] = []
        for operation, answer in zip(operations, answers, strict=True):
            match operation:
                case Create():
                    results.append(self.without_chroot(cast("str", answer)))
                case SetData():
                    results.append(_stat(cast("ZnodeStat", answer)))
                case _:
                    results.append(None)
        return tuple(results)


def path_of(operation: Operation[object]) -> str:
    """The path for an error message; of a transaction the first path, since a large value is written alone."""
    match operation:
        case GetData(path) | Exists(path) | GetChildren(path) | Create(path) | SetData(path) | Delete(path):
            return path
        case Multi((first, *_)) | ReadTogether(_, (first, *_)):
            return first.path
    return ""


def size_bytes(request: object) -> int:
    """The size of a request on the wire, without its header."""
    return len(cast("_Serializable", request).serialize())


class _Serializable(Protocol):
    def serialize(self) -> bytes: ...


def _refusal(error: BaseException, path: str) -> TreeError:
    for kind, refusal in _REFUSALS.items():
        if isinstance(error, kind):
            return refusal(path, f"ZooKeeper: {type(error).__name__} for {path}")
    return TreeError(path, f"ZooKeeper: {error!r} for {path}")


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        pzxid=stat.pzxid,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
        version=stat.version,
        cversion=stat.cversion,
        ephemeral_owner=stat.ephemeralOwner,
        data_length=stat.dataLength,
        num_children=stat.numChildren,
    )
