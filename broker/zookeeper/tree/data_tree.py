"""The tree as a server sees it: nodes, their ACLs, and the watches of its clients.

A change fires the watches on it as soon as the request is applied as a whole, so an event is in the output before
the answer that could show the change. A client gets the events of a node that it may read.

ZooKeeper: DataTree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.zookeeper import jute
from odradek.broker.zookeeper.client import Client
from odradek.broker.zookeeper.codes import (
    NOTIFICATION_XID,
    NOTIFICATION_ZXID,
    SYNC_CONNECTED,
    Code,
    EventType,
    Permission,
    Refused,
)
from odradek.broker.zookeeper.jute import Acl
from odradek.broker.zookeeper.tree.acl_check import OPEN, READ_ONLY, check_acl, is_allowed
from odradek.broker.zookeeper.tree.watch_manager import WatchManager
from odradek.controller.tree.metadata_tree import NO_OWNER, parent_path
from odradek.controller.tree.service_store import CONTAINER

if TYPE_CHECKING:
    from odradek.controller.tree.node_table import Node
    from odradek.controller.tree.service_store import ServiceStore

SPECIAL_PATHS: Final = frozenset(("", "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"))
"""These nodes cannot be deleted."""

CONFIG_ACL: Final = jute.acls(READ_ONLY)

_KEPT_ACLS_BYTES: Final = 1024


class _Event(NamedTuple):
    type: EventType
    path: str
    acls: tuple[Acl, ...]


class DataTree:
    """See the module. `send`: called with a client and a frame for it."""

    def __init__(self, store: ServiceStore, send: Callable[[Client, bytes], None]) -> None:
        self.store = store
        self.data_watches: WatchManager[Client] = WatchManager()
        self.child_watches: WatchManager[Client] = WatchManager()
        self._send = send
        self._events: list[_Event] = []

    # Reads

    def find(self, path: str) -> Node | None:
        """The node of any text: ZooKeeper finds the root also under the empty name."""
        if path and not path.startswith("/"):
            return None
        return self.store.find(path or "/")

    def require(self, path: str) -> Node:
        node = self.find(path)
        if node is None:
            raise Refused(Code.NO_NODE)
        return node

    def acls(self, path: str) -> tuple[Acl, ...]:
        encoded, _ = self.store.acl(path or "/")
        return OPEN if encoded is None else _decoded_acls(encoded)

    def acl_version(self, path: str) -> int:
        return self.store.acl(path or "/")[1]

    def check(self, client: Client, path: str, permission: int) -> None:
        """Raises Refused(NO_AUTH) if the client may not do that with the node."""
        check_acl(self.acls(path), permission, client.identities)

    def stat(self, path: str, node: Node) -> bytes:
        """The stat as clients see it: a container has no owner in it."""
        stat = node.stat()
        if stat.ephemeral_owner == CONTAINER:
            stat = stat._replace(ephemeral_owner=NO_OWNER)
        return jute.stat(stat, self.acl_version(path))

    # Writes; the caller has checked everything and taken a zxid

    def create(self, path: str, data: bytes | None, acls: Sequence[Acl], owner: int) -> Node:
        node = self.store.insert(path, data, owner)
        given = tuple(acls)
        if given != OPEN:
            self.store.write_acl(path, jute.acls(given), 0)
        parent = parent_path(path)
        self._events.append(_Event(EventType.CREATED, path, given))
        self._events.append(_Event(EventType.CHILDREN_CHANGED, parent, self.acls(parent)))
        return node

    def delete(self, path: str) -> None:
        acls = self.acls(path)
        parent = parent_path(path)
        self.store.remove(path)
        self._events.append(_Event(EventType.DELETED, path, acls))
        self._events.append(_Event(EventType.CHILDREN_CHANGED, parent, self.acls(parent)))

    def set_data(self, path: str, node: Node, data: bytes | None) -> None:
        self.store.update(path, node, data)
        self._events.append(_Event(EventType.DATA_CHANGED, path, self.acls(path)))

    def set_acls(self, path: str, acls: Sequence[Acl], version: int) -> None:
        self.store.write_acl(path, jute.acls(acls), version)

    def end_session(self, session_id: int) -> None:
        """Delete the session and its ephemeral nodes under a zxid of their own."""
        self.store.take_zxid()
        for path in self.store.owned_by(session_id):
            self.delete(path)
        self.store.remove_session(session_id)
        self.fire()

    # Parts of a request that are applied together

    def savepoint(self) -> tuple[int, int]:
        return self.store.savepoint(), len(self._events)

    def release(self) -> None:
        self.store.release()

    def undo(self, savepoint: tuple[int, int]) -> None:
        changes, events = savepoint
        self.store.undo(changes)
        del self._events[events:]

    # Watches

    def fire(self) -> None:
        """Send the events of the changes since the last call."""
        self.store.take_changes()
        events, self._events = self._events, []
        for event in events:
            clients: dict[Client, None] = {}
            if event.type is not EventType.CHILDREN_CHANGED:
                clients |= dict.fromkeys(self.data_watches.trigger(event.path, event.type))
            if event.type in (EventType.CHILDREN_CHANGED, EventType.DELETED):
                clients |= dict.fromkeys(self.child_watches.trigger(event.path, event.type))
            for client in clients:
                self.notify(client, event.type, event.path, event.acls)

    def notify(self, client: Client, event: EventType, path: str, acls: tuple[Acl, ...]) -> None:
        if is_allowed(acls, Permission.READ, client.identities):
            body = jute.integer(event) + jute.integer(SYNC_CONNECTED) + jute.string(path)
            self._send(client, jute.reply(NOTIFICATION_XID, NOTIFICATION_ZXID, Code.OK, body))

    def number_of_watches(self) -> int:
        managers = (self.data_watches, self.child_watches)
        return sum(len(clients) for manager in managers for clients in manager.by_path().values())

    def forget(self, client: Client) -> None:
        """The connection has gone, and its watches with it."""
        self.data_watches.remove_watcher(client)
        self.child_watches.remove_watcher(client)


def _decoded_acls(encoded: bytes) -> tuple[Acl, ...]:
    """Long ACLs are not kept: a client can make many of them."""
    return _kept_acls(encoded) if len(encoded) <= _KEPT_ACLS_BYTES else _acls(encoded)


def _acls(encoded: bytes) -> tuple[Acl, ...]:
    return tuple(jute.Reader(encoded).acls() or ())


_kept_acls = lru_cache(maxsize=1024)(_acls)
