"""The program of the fork server: it has imported the broker, and forks a process for each broker.

Requests come over a socket, one at a time: a byte, which the first kind of request comes with file descriptors, then a
pickle after its length.

    `BrokerEnvironment`, with stdin, stdout, stderr     fork a broker with them; the answer is its process id
    process id                                          wait for its end; the answer is its status

A broker that has ended keeps its id until somebody waits for it, so no signal meets another process. The end of the
socket ends the server; the brokers notice the end of the test process by their own pipes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from odradek.storage.disk.worker import read_message, write_message

if TYPE_CHECKING:
    from odradek.testing.node.fork_server import BrokerEnvironment

DESCRIPTORS: Final = 3
"""Standard input, output and error of a broker."""

NEEDED_BY_A_START: Final = (
    "concurrent.futures.thread",
    "odradek.broker.apis.cluster.broker_epoch",
    "odradek.broker.apis.cluster.update_metadata",
    "odradek.controller.tree.tree_store",
    "sqlite3",
    "uvloop",
)
"""What every broker would import for itself, which takes a third of its start."""


def main(descriptor: int) -> None:
    """Serve until the other end of the socket is closed. Garbage collections are off."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the brokers too, which the test process stops
    from odradek.testing.node import child

    import_all()
    gc.freeze()  # else the first collection of each broker would copy the pages of all modules
    with socket.socket(fileno=descriptor) as connection, cast("BinaryIO", connection.makefile("rwb")) as messages:
        while True:
            mark, descriptors, _, _ = socket.recv_fds(connection, 1, DESCRIPTORS)
            if not mark:
                return
            request = cast("BrokerEnvironment | int", read_message(messages))
            if isinstance(request, int):
                write_message(messages, os.waitstatus_to_exitcode(os.waitpid(request, 0)[1]))
                continue
            process_id = os.fork()
            if process_id == 0:
                break
            for each in descriptors:
                os.close(each)
            write_message(messages, process_id)
    _become(request, descriptors)
    child.main()


def import_all() -> None:
    """Import what brokers need for their start."""
    for name in NEEDED_BY_A_START:
        with contextlib.suppress(ImportError):  # uvloop need not be installed
            import_module(name)


def _become(environment: BrokerEnvironment, descriptors: list[int]) -> None:
    """Make this process one that the test process might have started."""
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(environment["environment"])
    os.chdir(environment["directory"])
    sys.path[:] = environment["path"]
