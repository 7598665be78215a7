"""From the bytes of a request to the bytes of its answer, in the order of the requests of all clients.

Synchronous: it runs in the thread of the tree, inside a transaction. What has to happen on the event loop (frames to
send, connections to close, sessions that began or ended) is collected in `output`, in order, and runs when the
transaction is on the disk.

ZooKeeper: ZooKeeperServer.processPacket, PrepRequestProcessor, FinalRequestProcessor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.zookeeper import jute
from odradek.broker.zookeeper.client import IDENTITIES_MAX, Client
from odradek.broker.zookeeper.codes import PING_XID, Code, LimitExceeded, OpCode, Refused
from odradek.broker.zookeeper.jute import JuteError, Reader
from odradek.broker.zookeeper.requests.read_requests import READS
from odradek.broker.zookeeper.requests.write_requests import apply_multi, apply_write, decoded, decoded_multi, op_code
from odradek.broker.zookeeper.tree.acl_check import proved_identity
from odradek.broker.zookeeper.tree.data_tree import DataTree

if TYPE_CHECKING:
    from odradek.controller.tree.service_store import ServiceStore, StoredSession

logger = logging.getLogger(__name__)

WRITES: Final = frozenset(
    (
        OpCode.CREATE,
        OpCode.CREATE2,
        OpCode.CREATE_CONTAINER,
        OpCode.CREATE_TTL,
        OpCode.DELETE,
        OpCode.DELETE_CONTAINER,
        OpCode.SET_DATA,
        OpCode.SET_ACL,
        OpCode.CHECK,
        OpCode.MULTI,
        OpCode.RECONFIG,
    )
)
"""Requests that take a zxid, whether they succeed or not."""

OPERATION_NAMES: Final = {
    OpCode.CREATE: "CREA",
    OpCode.CREATE2: "CREA",
    OpCode.CREATE_TTL: "CREA",
    OpCode.CREATE_CONTAINER: "CREA",
    OpCode.DELETE: "DELE",
    OpCode.EXISTS: "EXIS",
    OpCode.GET_DATA: "GETD",
    OpCode.SET_DATA: "SETD",
    OpCode.GET_ACL: "GETA",
    OpCode.SET_ACL: "SETA",
    OpCode.GET_CHILDREN: "GETC",
    OpCode.GET_CHILDREN2: "GETC",
    OpCode.SYNC: "SYNC",
    OpCode.PING: "PING",
    OpCode.CHECK: "CHEC",
    OpCode.MULTI: "MULT",
    OpCode.MULTI_READ: "MLTR",
    OpCode.CHECK_WATCHES: "CHKW",
    OpCode.REMOVE_WATCHES: "REMW",
    OpCode.SET_WATCHES: "SETW",
    OpCode.SET_WATCHES2: "STW2",
    OpCode.ADD_WATCH: "ADDW",
    OpCode.GET_EPHEMERALS: "GETE",
    OpCode.GET_ALL_CHILDREN_NUMBER: "GETACN",
    OpCode.WHO_AM_I: "HOMI",
    OpCode.CLOSE_SESSION: "CLOS",
}
"""The names of the four-letter word `cons`."""


class Connection(Protocol):
    """What happens on the event loop with the connection of a client."""

    def send(self, frame: bytes) -> None: ...

    def close(self) -> None:
        """Send what is waiting, then close."""

    def session_started(self, session: StoredSession) -> None: ...

    def session_refused(self) -> None: ...


class RequestProcessor:
    """See the module."""

    def __init__(self, store: ServiceStore, session_ended: Callable[[int], None]) -> None:
        """`session_ended`: called on the event loop with the id of a session that has ended."""
        self.tree = DataTree(store, self._send)
        self.output: list[Callable[[], None]] = []
        self.output_bytes = 0
        """The size of the frames in `output`."""
        self.zxid = store.zxid
        """The zxid after the last request; the event loop reads it."""
        self._store = store
        self._session_ended = session_ended
        self._connections: dict[Client, Connection] = {}
        self._sessions = {session.session_id for session in store.sessions()}

    # Sessions and connections

    def start_session(self, client: Client, connection: Connection, timeout_ms: int) -> None:
        self._store.take_zxid()
        session = self._store.add_session(timeout_ms)
        self._sessions.add(session.session_id)
        client.session_id = session.session_id
        self._connections[client] = connection
        self.output.append(partial(connection.session_started, session))
        self._finish()

    def resume_session(self, client: Client, connection: Connection, session: StoredSession) -> None:
        """A client is back. Its session may have ended since the event loop looked for it."""
        if session.session_id not in self._sessions:
            self.output.append(connection.session_refused)
            return
        client.session_id = session.session_id
        self._connections[client] = connection
        self.output.append(partial(connection.session_started, session))

    def end_session(self, session_id: int) -> None:
        """The session has timed out."""
        if session_id in self._sessions:
            self._end_session(session_id)
            self.output.append(partial(self._session_ended, session_id))
            self._finish()

    def _end_session(self, session_id: int) -> None:
        self._sessions.discard(session_id)
        self.tree.end_session(session_id)

    def connection_lost(self, client: Client) -> None:
        client.is_gone = True
        self.tree.forget(client)
        self._connections.pop(client, None)

    def remove_unused_containers(self) -> None:
        for path in self._store.unused_containers():
            self._store.take_zxid()
            self.tree.delete(path)
            self.tree.fire()
        self._finish()

    # Requests

    def request(self, client: Client, frame: bytes) -> None:
        """`frame`: a request without its length."""
        if client.is_gone:
            return
        reader = Reader(frame)
        try:
            xid, number = reader.integer(), reader.integer()
        except JuteError:
            self._close(client)
            return
        try:
            kind = op_code(number)
        except JuteError:
            logger.warning("Received packet at server of unknown type %d", number)
            self._reply(client, xid, -1, Code.UNIMPLEMENTED)
            self._close(client)
            return
        client.last_operation = OPERATION_NAMES.get(kind, client.last_operation)
        if kind is OpCode.AUTH:
            self._authenticate(client, xid, reader)
        elif kind is OpCode.SASL:
            # A ZooKeeper without SASL answers the first token with none; the client then goes on without SASL.
            self._reply(client, xid, 0, Code.OK, jute.buffer(None))
        elif client.session_id not in self._sessions:
            self._reply(client, xid, self._store.zxid, Code.SESSION_EXPIRED)
        elif kind is OpCode.PING:
            self._reply(client, PING_XID, self._store.zxid, Code.OK)
        elif kind is OpCode.CLOSE_SESSION:
            self._end_session(client.session_id)
            self._reply(client, xid, self._store.zxid, Code.OK)
            self._close(client)
            self.output.append(partial(self._session_ended, client.session_id))
        else:
            try:
                code, body = self._answer(client, kind, reader)
            except LimitExceeded as limit:
                logger.warning("The connection of the session 0x%x is closed: %s", client.session_id, limit)
                self._close(client)
            else:
                self._reply(client, xid, self._store.zxid, code, body)
        self._finish()

    def take_output(self) -> list[Callable[[], None]]:
        output, self.output, self.output_bytes = self.output, [], 0
        return output

    def _answer(self, client: Client, kind: OpCode, reader: Reader) -> tuple[Code, bytes]:
        if kind in WRITES:
            self._store.take_zxid()
        try:
            body = self._write(client, kind, reader) if kind in WRITES else READS[kind](self.tree, client, reader)
        except Refused as refused:
            return refused.code, b""
        except JuteError as error:
            if not client.has_sent_junk:
                client.has_sent_junk = True
                logger.warning("A request of the session 0x%x cannot be decoded: %s", client.session_id, error)
            return Code.MARSHALLING_ERROR, error.body
        self.tree.fire()
        return Code.OK, body

    def _write(self, client: Client, kind: OpCode, reader: Reader) -> bytes:
        if kind is OpCode.MULTI:
            return apply_multi(self.tree, client, decoded_multi(reader))
        if kind is OpCode.RECONFIG:
            raise Refused(Code.RECONFIG_DISABLED)
        if kind is OpCode.DELETE_CONTAINER:  # a request that servers make for themselves
            raise Refused(Code.BAD_ARGUMENTS)
        return apply_write(self.tree, client, decoded(kind, reader))

    def _authenticate(self, client: Client, xid: int, reader: Reader) -> None:
        try:
            reader.integer()
            scheme, credentials = reader.string(), reader.buffer()
        except JuteError:
            self._close(client)
            return
        identity = proved_identity(scheme, credentials, client.address)
        is_full = len(client.identities) >= IDENTITIES_MAX and identity not in client.identities
        if identity is None or is_full:
            logger.warning("Authentication failed for scheme: %s", scheme)
            self._reply(client, xid, 0, Code.AUTH_FAILED)
            self._close(client)
            return
        client.identities[identity] = None
        self._reply(client, xid, 0, Code.OK)

    # Output

    def _send(self, client: Client, frame: bytes) -> None:
        connection = self._connections.get(client)
        if connection is not None:
            self.output.append(partial(connection.send, frame))
            self.output_bytes += len(frame)

    def _reply(self, client: Client, xid: int, zxid: int, code: Code, body: bytes = b"") -> None:
        self._send(client, jute.reply(xid, zxid, code, body))

    def _close(self, client: Client) -> None:
        client.is_gone = True
        connection = self._connections.get(client)
        if connection is not None:
            self.output.append(connection.close)

    def _finish(self) -> None:
        self.zxid = self._store.zxid
