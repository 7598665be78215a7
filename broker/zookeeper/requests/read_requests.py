"""The requests that read the tree, and those that set, check and remove watches.

ZooKeeper: FinalRequestProcessor.processRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from odradek.broker.zookeeper import jute
from odradek.broker.zookeeper.client import Client
from odradek.broker.zookeeper.codes import Code, EventType, LimitExceeded, OpCode, Permission, Refused
from odradek.broker.zookeeper.jute import JuteError, Reader
from odradek.broker.zookeeper.requests.write_requests import IN_MULTI, error_result, multi_body, operations_of
from odradek.broker.zookeeper.tree.acl_check import is_allowed, user_name, without_hashes
from odradek.broker.zookeeper.tree.data_tree import DataTree
from odradek.broker.zookeeper.tree.watch_manager import WatcherMode, WatchManager

Handler: TypeAlias = Callable[[DataTree, Client, Reader], bytes]
"""Returns the body of the answer. Raises Refused, or JuteError for bytes that it cannot decode."""

MULTI_READ_BYTES_MAX: Final = 64 << 20
"""The answer of a multiRead: one small request can name a large node thousands of times."""

_WATCH_MODES: Final = (WatcherMode.PERSISTENT, WatcherMode.PERSISTENT_RECURSIVE)
_CHILDREN, _DATA, _ANY = 1, 2, 3
"""Which watches a request names. ZooKeeper: Watcher.WatcherType."""


def _path(reader: Reader) -> str:
    path = reader.string()
    if path is None:  # a NullPointerException in ZooKeeper, which answers it like bytes that it cannot decode
        raise JuteError("the path is null")
    return path


def _exists(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path, watches = _path(reader), reader.boolean()
    if "\0" in path:
        raise Refused(Code.BAD_ARGUMENTS)
    node = tree.find(path)
    if node is not None:
        tree.check(client, path, Permission.READ)
    if watches:
        tree.data_watches.add(path, client)
    if node is None:
        raise Refused(Code.NO_NODE)
    return tree.stat(path, node)


def _get_data(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path, watches = _path(reader), reader.boolean()
    node = tree.require(path)
    tree.check(client, path, Permission.READ)
    if watches:
        tree.data_watches.add(path, client)
    return jute.buffer(node.data) + tree.stat(path, node)


def _children(tree: DataTree, client: Client, reader: Reader) -> tuple[bytes, bytes]:
    """The names of the children, and the stat of the node."""
    path, watches = _path(reader), reader.boolean()
    node = tree.require(path)
    tree.check(client, path, Permission.READ)
    if watches:
        tree.child_watches.add(path, client)
    return jute.strings(tree.store.names_of_children(path or "/")), tree.stat(path, node)


def _get_children(tree: DataTree, client: Client, reader: Reader) -> bytes:
    return _children(tree, client, reader)[0]


def _get_children2(tree: DataTree, client: Client, reader: Reader) -> bytes:
    names, stat = _children(tree, client, reader)
    return names + stat


def _get_all_children_number(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path = _path(reader)
    tree.require(path)
    tree.check(client, path, Permission.READ)
    return jute.integer(tree.store.number_below(path or "/"))


def _get_acl(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path = _path(reader)
    node = tree.require(path)
    acls = tree.acls(path)
    tree.check(client, path, Permission.READ | Permission.ADMIN)
    shown = acls if is_allowed(acls, Permission.ADMIN, client.identities) else without_hashes(acls)
    return jute.acls(shown) + tree.stat(path, node)


def _get_ephemerals(tree: DataTree, client: Client, reader: Reader) -> bytes:
    prefix = reader.string()
    paths = tree.store.owned_by(client.session_id)
    if prefix is not None and prefix.strip() not in ("", "/"):
        paths = [path for path in paths if path.startswith(prefix)]
    return jute.strings(paths)


def _sync(tree: DataTree, client: Client, reader: Reader) -> bytes:
    return jute.string(reader.string())


def _who_am_i(tree: DataTree, client: Client, reader: Reader) -> bytes:
    infos = [jute.string(identity.scheme) + jute.string(user_name(identity)) for identity in client.identities]
    return jute.integer(len(infos)) + b"".join(infos)


def _multi_read(tree: DataTree, client: Client, reader: Reader) -> bytes:
    def operation(kind: OpCode) -> tuple[OpCode, Handler]:
        if kind is OpCode.GET_DATA or kind is OpCode.GET_CHILDREN:
            path, watches = reader.string(), reader.boolean()
            request = jute.string(path) + (b"\1" if watches else b"\0")
            handler = READS[kind]
            return kind, lambda tree, client, _: handler(tree, client, Reader(request))
        raise JuteError(f"{kind!r} cannot be in a multiRead", multi_body([]) if kind in IN_MULTI else b"")

    results: list[bytes] = []
    size = 0
    for kind, read in operations_of(reader, operation):
        try:
            results.append(jute.multi_header(kind, Code.OK) + read(tree, client, reader))
        except Refused as refused:
            results.append(error_result(refused.code))
        size += len(results[-1])
        if size > MULTI_READ_BYTES_MAX:
            raise LimitExceeded(f"the answer of a multiRead takes more than {MULTI_READ_BYTES_MAX} bytes")
    return multi_body(results)


# Watches


def _set_watches(tree: DataTree, client: Client, reader: Reader) -> bytes:
    _renew_watches(tree, client, reader)
    return b""


def _set_watches2(tree: DataTree, client: Client, reader: Reader) -> bytes:
    _renew_watches(tree, client, reader)
    for mode in _WATCH_MODES:
        for path in reader.strings():
            tree.child_watches.add(path, client, mode)
            tree.data_watches.add(path, client, mode)
    return b""


def _renew_watches(tree: DataTree, client: Client, reader: Reader) -> None:
    """Set the watches of a client that is back, or send what has changed since its last zxid.

    As in ZooKeeper 3.8, these events do not depend on the ACLs of the nodes.
    """
    zxid = reader.long()
    for path in reader.strings():
        node = tree.find(path)
        if node is None:
            tree.notify(client, EventType.DELETED, path, ())
        elif node.mzxid > zxid:
            tree.notify(client, EventType.DATA_CHANGED, path, ())
        else:
            tree.data_watches.add(path, client)
    for path in reader.strings():
        if tree.find(path) is None:
            tree.data_watches.add(path, client)
        else:
            tree.notify(client, EventType.CREATED, path, ())
    for path in reader.strings():
        node = tree.find(path)
        if node is None:
            tree.notify(client, EventType.DELETED, path, ())
        elif node.pzxid > zxid:
            tree.notify(client, EventType.CHILDREN_CHANGED, path, ())
        else:
            tree.child_watches.add(path, client)


def _add_watch(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path, mode = _path(reader), reader.integer()
    if not 0 <= mode < len(_WATCH_MODES):
        raise JuteError(f"{mode} is no mode of a watch")
    tree.data_watches.add(path, client, _WATCH_MODES[mode])
    tree.child_watches.add(path, client, _WATCH_MODES[mode])
    return jute.integer(Code.OK)


def _check_watches(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path, managers = _named_watches(tree, reader)
    if path and "/" not in path:  # ZooKeeper looks for its parent, and answers the exception like junk
        raise JuteError(f"{path!r} is no path")
    if not any(manager.contains(path, client) for manager in managers):
        raise Refused(Code.NO_WATCHER)
    return b""


def _remove_watches(tree: DataTree, client: Client, reader: Reader) -> bytes:
    path, managers = _named_watches(tree, reader)
    removed = [manager.remove(path, client) for manager in managers]
    if not any(removed):
        raise Refused(Code.NO_WATCHER)
    return b""


def _named_watches(tree: DataTree, reader: Reader) -> tuple[str, list[WatchManager[Client]]]:
    path, kind = _path(reader), reader.integer()
    if kind not in (_CHILDREN, _DATA, _ANY):
        raise JuteError(f"{kind} is no type of a watch")
    managers = []
    if kind != _DATA:
        managers.append(tree.child_watches)
    if kind != _CHILDREN:
        managers.append(tree.data_watches)
    return path, managers


READS: Final[dict[OpCode, Handler]] = {
    OpCode.EXISTS: _exists,
    OpCode.GET_DATA: _get_data,
    OpCode.GET_CHILDREN: _get_children,
    OpCode.GET_CHILDREN2: _get_children2,
    OpCode.GET_ALL_CHILDREN_NUMBER: _get_all_children_number,
    OpCode.GET_ACL: _get_acl,
    OpCode.GET_EPHEMERALS: _get_ephemerals,
    OpCode.SYNC: _sync,
    OpCode.WHO_AM_I: _who_am_i,
    OpCode.MULTI_READ: _multi_read,
    OpCode.SET_WATCHES: _set_watches,
    OpCode.SET_WATCHES2: _set_watches2,
    OpCode.ADD_WATCH: _add_watch,
    OpCode.CHECK_WATCHES: _check_watches,
    OpCode.REMOVE_WATCHES: _remove_watches,
}
"""Requests that take no zxid."""
