"""The nodes of a ZooKeeper, read and written in batches through kazoo.

Batches are pipelined: all requests of one are on their way before the first answer is awaited, and ZooKeeper answers
a client's requests in their order. The answers are awaited in a thread, one hop per batch.

Values go through unchanged. Kafka tells null from empty ones and kazoo's own methods do not create nodes of null,
therefore transactions are filled with requests directly.

The only module that knows kazoo. Answers to Kafka's `ZooKeeperClient` as far as persistent nodes go: it takes
`GetData` and `GetChildren` without a watcher, and `Multi`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar, cast

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.protocol import serialization
from kazoo.protocol.states import ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

from odradek.controller.metadata_tree import (
    BadArguments,
    BadVersion,
    Check,
    Children,
    ConnectionLoss,
    Create,
    DataAndStat,
    Delete,
    GetChildren,
    GetData,
    Multi,
    MultiFailed,
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
)

SESSION_TIMEOUT_S: Final = 18.0
"""zookeeper.session.timeout.ms by default, which is the default of zookeeper.connection.timeout.ms as well."""

_REFUSALS: Final[dict[type[BaseException], type[TreeError]]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.BadArgumentsError: BadArguments,
    exceptions.SessionExpiredError: SessionExpired,
    exceptions.ConnectionLoss: ConnectionLoss,
    exceptions.ZookeeperError: TreeError,  # whatever else the server says, NoAuth for one
}

_NOT_THE_CAUSE: Final = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""What the other operations of a failed transaction are answered with."""

ResultT = TypeVar("ResultT")


class _Answer(Protocol):
    """What is used of kazoo's AsyncResult."""

    exception: BaseException | None
    value: object

    def wait(self) -> bool: ...


class ZooKeeperNodes:
    """A connection to a ZooKeeper; paths begin below its chroot. Implements Nodes."""

    def __init__(self, hosts: str, chroot: str = "") -> None:
        self._hosts = hosts
        self._chroot = chroot
        self._client = KazooClient(hosts, timeout=SESSION_TIMEOUT_S, logger=logging.getLogger("kazoo"))

    async def connect(self, timeout_s: float = SESSION_TIMEOUT_S) -> None:
        """Open the session; raises ConnectionLoss when no server answers in time."""
        try:
            await asyncio.to_thread(self._client.start, timeout_s)
        except self._client.handler.timeout_exception as error:
            raise ConnectionLoss("", f"no ZooKeeper answers at {self._hosts}") from error

    async def create_chroot(self) -> None:
        """Make sure of the node that all others are below of, as a broker does when it starts."""
        await asyncio.to_thread(self._client.ensure_path, self._path("/"))

    async def close(self) -> None:
        await asyncio.to_thread(self._client.stop)
        self._client.close()

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        answers = [self._request(operation) for operation in operations]
        await asyncio.to_thread(_wait_for_all, answers)
        results = [_result(operation, answer) for operation, answer in zip(operations, answers, strict=True)]
        for result in results:
            if isinstance(result, ConnectionLoss | SessionExpired):
                raise result
        return cast("list[ResultT | TreeError]", results)

    def _request(self, operation: Operation[object]) -> _Answer:
        match operation:
            case GetData(path, None):
                answer = self._client.get_async(self._path(path))
            case GetChildren(path, None):
                answer = self._client.get_children_async(self._path(path), include_data=True)
            case Multi(operations):
                transaction = self._client.transaction()
                transaction.operations += [self._write(write) for write in operations]
                answer = transaction.commit_async()
            case _:
                raise TypeError(f"not an operation on a ZooKeeper's nodes: {operation!r}")
        return cast("_Answer", answer)

    def _write(self, operation: WriteOperation) -> object:
        path = self._path(operation.path)
        match operation:
            case Create(_, data, mode):
                flags = mode.is_ephemeral | mode.is_sequential << 1
                return serialization.Create(path, data, OPEN_ACL_UNSAFE, flags)
            case SetData(_, data, version):
                return serialization.SetData(path, data, version)
            case Delete(_, version):
                return serialization.Delete(path, version)
            case Check(_, version):
                return serialization.CheckVersion(path, version)

    def _path(self, path: str) -> str:
        return (self._chroot or "/") if path == "/" else self._chroot + path


def _wait_for_all(answers: list[_Answer]) -> None:
    for answer in answers:
        answer.wait()


def _result(operation: Operation[object], answer: _Answer) -> object:
    if answer.exception is not None:
        return _refusal(answer.exception, _path_of(operation))
    match operation:
        case GetData():
            data, stat = cast("tuple[bytes | None, ZnodeStat]", answer.value)
            return DataAndStat(data, _stat(stat))
        case GetChildren():
            names, stat = cast("tuple[list[str], ZnodeStat]", answer.value)
            return Children(tuple(sorted(names)), _stat(stat))
        case Multi(operations):
            return _multi_result(operations, cast("list[object]", answer.value))
    raise TypeError(f"an answer to {operation!r}")


def _multi_result(operations: Sequence[WriteOperation], answers: list[object]) -> object:
    for index, answer in enumerate(answers):
        if isinstance(answer, Exception) and not isinstance(answer, _NOT_THE_CAUSE):
            return MultiFailed(index, _refusal(answer, operations[index].path))
    results: list[WriteResult] = []
    for operation, answer in zip(operations, answers, strict=True):
        match operation:
            case Create():
                results.append(cast("str", answer))
            case SetData():
                results.append(_stat(cast("ZnodeStat", answer)))
            case _:
                results.append(None)
    return tuple(results)


def _refusal(error: BaseException, path: str) -> TreeError:
    for kind, refusal in _REFUSALS.items():
        if isinstance(error, kind):
            return refusal(path, f"ZooKeeper: {type(error).__name__} for {path}")
    raise error


def _path_of(operation: Operation[object]) -> str:
    """The node an error is about. Of a transaction that got no answer, the first: a large value travels alone."""
    match operation:
        case GetData(path) | GetChildren(path) | Multi((Create(path) | SetData(path), *_)):
            return path
    return ""


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
