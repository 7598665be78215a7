"""The daemon as the harness starts it: `python -m tests.support.apache_tests.daemon [OPTIONS] serve ...`.

It has a side door: a port on which the harness asks for what Apache's tests read from the objects of a broker, whatever
the listeners and the ACLs are. A question is a text of `QUESTION_BYTES`, padded with spaces:

    listener NAME               the connection goes on as one of a client of that listener, with the principal
                                `PRINCIPAL`, which the harness makes a super user
    scram MECHANISM USER        the credential that the broker has in its cache, or nothing
    authentications             lines of listener, count, and value
    listeners                   lines of listener and port

`--settings FILE` has the present settings of the broker written to that file, as JSON, whenever one has changed.
`--clock MS` sets the wall clock. Some tests give their broker a clock that begins at 0, and write records of the first
seconds of 1970, which retention would take away at once today.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from odradek.broker.cli import main
from odradek.broker.network.connection.connection import Connection
from odradek.broker.network.listeners.socket_server import SocketServer
from odradek.broker.server import KafkaServer
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.timer.clock import SystemClock

QUESTION_BYTES = 256
SETTINGS_INTERVAL_S = 0.05
PRINCIPAL = "User:odradek-harness"


class SideDoor:
    """The port of one broker for its harness."""

    def __init__(self, server: KafkaServer) -> None:
        self._server = server
        self._tasks = set[asyncio.Task[None]]()

    def open(self) -> int:
        """Listen on a free port of the loopback address, and return it."""
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        self._spawn(listening)
        port: int = listening.getsockname()[1]
        return port

    def _spawn(self, listening: socket.socket) -> None:
        task = asyncio.get_running_loop().create_task(self._accept(listening))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket) -> None:
        accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
        self._spawn(listening)
        accepted.setblocking(False)
        question = (await _received(accepted)).rstrip(" ").split(" ", 2)
        if question[0] == "listener":
            await self._connect(accepted, question[1])
            return
        with accepted:
            await asyncio.get_running_loop().sock_sendall(accepted, self._answer(*question).encode())

    async def _connect(self, accepted: socket.socket, listener_name: str) -> None:
        sockets = self._server._sockets
        assert isinstance(sockets, SocketServer)
        max_bytes = self._server.config.socket_request_max_bytes
        connection = Connection(sockets, listener_name, max_bytes, SecurityProtocol.SASL_PLAINTEXT)
        connection.principal = PRINCIPAL
        await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted)

    def _answer(self, question: str, *arguments: str) -> str:
        if question == "scram":
            credential = self._server._scram_credentials.scram_credential(*arguments)
            return "" if credential is None else credential.to_text()
        sockets = self._server._sockets
        assert isinstance(sockets, SocketServer)
        if question == "listeners":
            return "".join(f"{point.listener_name} {point.port}\n" for point in sockets.end_points)
        assert question == "authentications", question
        return "".join(
            f"{listener} {name} {value}\n"
            for listener, counts in sockets.authentication_counts.items()
            for name, value in asdict(counts).items()
        )


async def _received(accepted: socket.socket) -> str:
    loop = asyncio.get_running_loop()
    question = b""
    while len(question) < QUESTION_BYTES:
        received = await loop.sock_recv(accepted, QUESTION_BYTES - len(question))
        if not received:
            raise ConnectionError("the harness has closed its connection")
        question += received
    return question.decode()


def add_to_start(settings: Path) -> None:
    """Open the side door of each broker that has started, and print its port; write the settings now and later."""
    start = KafkaServer.start
    followers = set[asyncio.Task[None]]()

    async def start_with_side_door(server: KafkaServer) -> None:
        await start(server)
        followers.add(asyncio.get_running_loop().create_task(_follow_settings(server, settings)))
        print(f"  side door     {SideDoor(server).open()}", flush=True)

    KafkaServer.start = start_with_side_door  # type: ignore[method-assign]


async def _follow_settings(server: KafkaServer, path: Path) -> None:
    written: Mapping[str, str] | None = None
    while True:
        settings = server.config.settings
        if settings is not written:
            new = path.with_suffix(".new")
            new.write_text(json.dumps(dict(settings)))
            new.replace(path)
            written = settings
        await asyncio.sleep(SETTINGS_INTERVAL_S)


def begin_at(start_ms: int) -> None:
    """Set every wall clock of this process to `start_ms`; it goes on from there."""
    real_ms = SystemClock().monotonic_ms
    began_ms = real_ms()

    def time_ms(_: SystemClock) -> int:
        return start_ms + real_ms() - began_ms

    SystemClock.time_ms = time_ms  # type: ignore[method-assign]


def run() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--clock", type=int)
    options, sys.argv[1:] = parser.parse_known_args()
    if options.clock is not None:
        begin_at(options.clock)
    add_to_start(options.settings)
    return main()


if __name__ == "__main__":
    sys.exit(run())
