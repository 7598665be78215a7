"""Brokers in processes of their own that start at once: a fork server has imported the broker, and forks each of them.

A new interpreter needs 0.2 s to import the broker; a process that has done so forks in milliseconds. The server starts
with the first broker and ends with the test process. Its program is `odradek.testing.node.fork_server_main`.

This module imports little: all that the test process imports before it has started the server makes the first start
longer.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, BinaryIO, Final, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "import gc; gc.disable(); from odradek.testing.node.fork_server_main import main; main({})"


class BrokerEnvironment(TypedDict):
    """What a process inherits from the one that starts it."""

    environment: dict[str, str]
    directory: str
    path: list[str]


class ForkServer:
    """One fork server. Its methods may be called in any thread; they raise OSError or EOFError if it was killed."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._connection, its_end = socket.socketpair()
        self._messages = cast("BinaryIO", self._connection.makefile("rwb"))
        with its_end:
            number = its_end.fileno()
            command = (sys.executable, "-c", PROGRAM.format(number))
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(number,), env=_environment())

    @property
    def process_id(self) -> int:
        return self._process.pid

    def fork(self, descriptors: Sequence[int]) -> int:
        """Start a broker with this standard input, output and error. Its process id."""
        inherited = BrokerEnvironment(environment=_environment(), directory=os.getcwd(), path=sys.path)
        return self._ask(inherited, descriptors)

    def wait(self, process_id: int) -> int:
        """Wait for the end of a broker that ends. Its status, as `subprocess.Popen.returncode`."""
        return self._ask(process_id, ())

    def _ask(self, request: BrokerEnvironment | int, descriptors: Sequence[int]) -> int:
        from odradek.storage.disk.worker import read_message, write_message

        with self._asking:
            socket.send_fds(self._connection, [b"\0"], descriptors)
            write_message(self._messages, request)
            return cast("int", read_message(self._messages))

    def close(self) -> None:
        """End the server and wait for its end. Brokers that it has forked go on."""
        self.close_in_fork()
        self._process.wait()

    def close_in_fork(self) -> None:
        """Close the socket, which ends the server when no other process has it. Takes no lock: a thread that is not in
        the forked process may hold it.
        """
        os.close(self._connection.detach())


class ForkServers:
    """The fork server of this process: none before the first broker, another one after a kill."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._server: ForkServer | None = None
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def start(self) -> None:
        """Start the server if there is none. It imports the broker while this process does other things."""
        with contextlib.suppress(OSError):  # `fork` tries it again
            self._present()

    def fork(self, descriptors: Sequence[int]) -> tuple[ForkServer, int]:
        """Start a broker. The server that has forked it, and its process id. Raises: OSError, EOFError."""
        server = self._present()
        try:
            return server, server.fork(descriptors)
        except (OSError, EOFError):
            self._replace(server)
        server = self._present()
        return server, server.fork(descriptors)

    def close(self) -> None:
        """End the server; the next broker starts another one."""
        with self._starting:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _present(self) -> ForkServer:
        with self._starting:
            if self._server is None:
                self._server = ForkServer()
            return self._server

    def _replace(self, dead: ForkServer) -> None:
        with self._starting:
            if self._server is dead:
                self._server = None
                dead.close()

    def _forget(self) -> None:
        """In a forked process, where a lock may be held by a thread that is not there."""
        self._starting = threading.Lock()
        server, self._server = self._server, None
        if server is not None:
            server.close_in_fork()


def _environment() -> dict[str, str]:
    """With the module search path of this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


FORK_SERVERS: Final = ForkServers()
"""That of this process."""
