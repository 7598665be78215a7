"""The four-letter words: what an operator asks with `echo srvr | nc HOST PORT`.

Only `srvr` is answered unless `4lw.commands.whitelist` names more. The texts are those of ZooKeeper 3.8; where
ZooKeeper prints facts of its JVM or of its own files, this service prints those of its process and its database.

ZooKeeper: FourLetterCommands and the classes in org.apache.zookeeper.server.command.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

import odradek
from odradek.broker.zookeeper.service_settings import ALL_WORDS
from odradek.controller.tree.service_store import StoreUnavailable

if TYPE_CHECKING:
    from odradek.broker.zookeeper.connection import ServiceConnection, ServiceStats
    from odradek.broker.zookeeper.requests.request_processor import RequestProcessor
    from odradek.broker.zookeeper.service_settings import ServiceSettings
    from odradek.broker.zookeeper.session_tracker import SessionTracker
    from odradek.broker.zookeeper.tree_thread import TreeThread
    from odradek.timer.clock import Clock

VERSION: Final = f"3.8.4-odradek-{odradek.__version__}"
"""Clients and dashboards look at the first part: which ZooKeeper's protocol is spoken."""


class AskedServer(Protocol):
    """What the answers show; `ZooKeeperServer` implements it."""

    settings: ServiceSettings
    clock: Clock
    sessions: SessionTracker
    stats: ServiceStats
    thread: TreeThread
    connections: dict[ServiceConnection, None]
    outstanding: int
    port: int

    @property
    def zxid(self) -> int: ...

    @property
    def uptime_ms(self) -> int: ...

    def data_bytes(self) -> int: ...


class WordAnswers:
    """Makes the answers of one server."""

    def __init__(self, server: AskedServer) -> None:
        self._server = server
        self._answers: dict[str, Callable[[], Awaitable[str]]] = {
            "ruok": self._ruok,
            "isro": self._isro,
            "srvr": self._srvr,
            "stat": self._stat,
            "mntr": self._mntr,
            "conf": self._conf,
            "envi": self._envi,
            "cons": self._cons,
            "dump": self._dump,
            "wchs": self._wchs,
            "wchc": self._wchc,
            "wchp": self._wchp,
            "crst": self._crst,
            "srst": self._srst,
            "dirs": self._dirs,
        }

    async def answer(self, connection: ServiceConnection, word: str) -> None:
        """Write the answer to the connection and close it."""
        allowed = self._server.settings.words
        if (ALL_WORDS in allowed or word in allowed) and word in self._answers:
            try:
                text = await self._answers[word]()
            except StoreUnavailable:
                connection.close()
            else:
                connection.write_text(text)
        else:
            connection.write_text(f"{word} is not executed because it is not in the whitelist.\n")

    async def _ruok(self) -> str:
        return "imok"

    async def _isro(self) -> str:
        return "rw"

    async def _srvr(self) -> str:
        stats, latency = self._server.stats, self._server.stats.latency
        nodes = await self._number_of_nodes()
        return (
            f"Zookeeper version: {VERSION}\n"
            f"Latency min/avg/max: {latency.least_ms}/{latency.average_ms:.4g}/{latency.most_ms}\n"
            f"Received: {stats.received}\n"
            f"Sent: {stats.sent}\n"
            f"Connections: {len(self._server.connections)}\n"
            f"Outstanding: {self._server.outstanding}\n"
            f"Zxid: {self._server.zxid:#x}\n"
            f"Mode: standalone\n"
            f"Node count: {nodes}\n"
        )

    async def _stat(self) -> str:
        first, rest = (await self._srvr()).split("\n", 1)
        clients = "".join(_brief(connection) + "\n" for connection in self._server.connections)
        return f"{first}\nClients:\n{clients}\n{rest}"

    async def _cons(self) -> str:
        return "".join(_full(connection, self._server.zxid) + "\n" for connection in self._server.connections) + "\n"

    async def _crst(self) -> str:
        for connection in self._server.connections:
            connection.reset_stats()
        return "Connection stats reset.\n"

    async def _srst(self) -> str:
        self._server.stats.reset()
        return "Server stats reset.\n"

    async def _dirs(self) -> str:
        return f"datadir_size: {self._server.data_bytes()}\nlogdir_size: {self._server.data_bytes()}\n"

    async def _mntr(self) -> str:
        server, stats = self._server, self._server.stats
        counts = await server.thread.ask(_counts)
        values: dict[str, object] = {
            "version": VERSION,
            "server_state": "standalone",
            "avg_latency": stats.latency.average_ms,
            "max_latency": stats.latency.most_ms,
            "min_latency": stats.latency.least_ms,
            "packets_received": stats.received,
            "packets_sent": stats.sent,
            "num_alive_connections": len(server.connections),
            "outstanding_requests": server.outstanding,
            "global_sessions": len(server.sessions),
            "local_sessions": 0,
            "uptime": server.uptime_ms,
        }
        lines = "".join(f"zk_{key}\t{value}\n" for key, value in values.items())
        return lines + counts + f"zk_open_file_descriptor_count\t{len(os.listdir('/proc/self/fd'))}\n"

    async def _conf(self) -> str:
        settings = self._server.settings
        size = self._server.data_bytes()
        return (
            f"clientPort={self._server.port}\n"
            "secureClientPort=-1\n"
            f"dataDir={settings.directory}\n"
            f"dataDirSize={size}\n"
            f"dataLogDir={settings.directory}\n"
            f"dataLogSize={size}\n"
            f"tickTime={settings.tick_time_ms}\n"
            f"maxClientCnxns={settings.max_client_connections}\n"
            f"minSessionTimeout={settings.min_session_timeout_ms}\n"
            f"maxSessionTimeout={settings.max_session_timeout_ms}\n"
            f"clientPortListenBacklog={settings.backlog}\n"
            "serverId=0\n"
        )

    async def _envi(self) -> str:
        values = {
            "zookeeper.version": VERSION,
            "host.name": socket.gethostname(),
            "python.version": platform.python_version(),
            "python.executable": sys.executable,
            "os.name": platform.system(),
            "os.arch": platform.machine(),
            "os.version": platform.release(),
            "user.dir": os.getcwd(),
        }
        return "Environment:\n" + "".join(f"{key}={value}\n" for key, value in values.items())

    async def _dump(self) -> str:
        server = self._server
        deadlines = server.sessions.by_deadline()
        lines = [f"SessionTracker dump:\nSession Sets ({len(deadlines)})/({len(server.sessions)}):\n"]
        now_ms = server.clock.time_ms()
        for in_ms, sessions in deadlines.items():
            moment = datetime.fromtimestamp((now_ms + in_ms) / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
            lines.append(
                f"{len(sessions)} expire at {moment}:\n" + "".join(f"\t{session:#x}\n" for session in sessions)
            )
        lines.append("ephemeral nodes dump:\n")
        lines.append(await server.thread.ask(_ephemerals))
        lines.append("Connections dump:\n")
        for connection in server.connections:
            host, port = connection.address
            lines.append(f"ip: /{host}:{port} sessionId: {connection.session_id:#x}\n")
        return "".join(lines)

    async def _wchs(self) -> str:
        return await self._server.thread.ask(_watch_summary) + "\n"

    async def _wchc(self) -> str:
        return await self._server.thread.ask(_watches_by_session) + "\n"

    async def _wchp(self) -> str:
        return await self._server.thread.ask(_watches_by_path) + "\n"

    async def _number_of_nodes(self) -> str:
        return await self._server.thread.ask(lambda processor: str(processor.tree.store.number_of_nodes()))


# The functions below run in the thread of the tree.


def _counts(processor: RequestProcessor) -> str:
    store = processor.tree.store
    owners = store.owners()
    values = {
        "znode_count": store.number_of_nodes(),
        "watch_count": processor.tree.number_of_watches(),
        "ephemerals_count": sum(len(store.owned_by(owner)) for owner in owners),
        "approximate_data_size": store.data_size(),
    }
    return "".join(f"zk_{key}\t{value}\n" for key, value in values.items())


def _ephemerals(processor: RequestProcessor) -> str:
    store = processor.tree.store
    owners = store.owners()
    text = f"Sessions with Ephemerals ({len(owners)}):\n"
    for owner in owners:
        text += f"{owner:#x}:\n" + "".join(f"\t{path}\n" for path in store.owned_by(owner))
    return text


def _watch_summary(processor: RequestProcessor) -> str:
    by_watcher = processor.tree.data_watches.by_watcher()
    total = sum(len(paths) for paths in by_watcher.values())
    paths = len(processor.tree.data_watches.by_path())
    return f"{len(by_watcher)} connections watching {paths} paths\nTotal watches:{total}\n"


def _watches_by_session(processor: RequestProcessor) -> str:
    """Of the watches on data only, as ZooKeeper prints them."""
    return "".join(
        f"{client.session_id:#x}\n" + "".join(f"\t{path}\n" for path in paths)
        for client, paths in processor.tree.data_watches.by_watcher().items()
    )


def _watches_by_path(processor: RequestProcessor) -> str:
    return "".join(
        f"{path}\n" + "".join(f"\t{client.session_id:#x}\n" for client in clients)
        for path, clients in processor.tree.data_watches.by_path().items()
    )


# Connections


def _brief(connection: ServiceConnection) -> str:
    host, port = connection.address
    return f" /{host}:{port}[1](queued={connection.outstanding},recved={connection.received},sent={connection.sent})"


def _full(connection: ServiceConnection, zxid: int) -> str:
    brief = _brief(connection)
    if not connection.session_id:
        return brief
    latency = connection.latency
    return (
        f"{brief[:-1]},sid={connection.session_id:#x},lop={connection.client.last_operation},"
        f"est={connection.established_ms},to={connection.session_timeout_ms},lzxid={zxid:#x},"
        f"llat={latency.last_ms},minlat={latency.least_ms},avglat={latency.average_ms:.4g},maxlat={latency.most_ms})"
    )
