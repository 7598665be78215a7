"""A process that sends a broker one request after the other, and prints the longest wait for an answer.

A process, so that the work of the test does not delay it. It gets a host, a port, the broker's process and the frame of
the request in hex, and prints `ready` when it is connected. When its input ends, it prints a `Seen` as JSON. It uses
the standard library alone, so it is there within some tens of milliseconds.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
from contextlib import closing
from typing import Final, NamedTuple

from tests.support.processes.waits import Waits

PERIOD_S: Final = 0.01
TIMEOUT_S: Final = 60


class Seen(NamedTuple):
    whole_s: float
    undisturbed_s: float
    """The longest of each: `tests.support.processes.waits.Wait`."""
    answers: int


def exchange(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    (left,) = struct.unpack(">i", received(connection, 4))
    while left:
        left -= len(received(connection, min(left, 1 << 16)))


def received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError("the broker has closed the connection")
        data += part
    return data


def main() -> None:
    host, port, pid, frame = sys.argv[1:]
    data = struct.pack(">i", len(frame) // 2) + bytes.fromhex(frame)
    whole_s = undisturbed_s = 0.0
    answers = 0
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection, closing(Waits(int(pid))) as waits:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("ready", flush=True)
        is_over = False
        while not is_over:
            waits.begin()
            exchange(connection, data)
            wait = waits.end()
            whole_s, undisturbed_s = max(whole_s, wait.whole_s), max(undisturbed_s, wait.undisturbed_s)
            answers += 1
            is_over = bool(select.select([sys.stdin], [], [], PERIOD_S)[0])
    print(json.dumps(Seen(whole_s, undisturbed_s, answers)), flush=True)


if __name__ == "__main__":
    main()
