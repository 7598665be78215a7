"""One prepared frame, sent again and again with several under way: a client that costs much less than a broker."""

from __future__ import annotations

import selectors
import socket
from typing import Final

RECEIVED_AT_ONCE: Final = 1 << 18


def pump(host: str, port: int, frame: bytes, requests: int, count: int, under_way: int) -> None:
    """So many requests over `count` connections, each with `under_way` of them. All answers have the same size."""
    each = requests // count
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            pump_one = _Pump(socket.create_connection((host, port)), frame, each)
            selector.register(pump_one.socket, selectors.EVENT_READ, pump_one)
            pump_one.begin(under_way)
        while selector.get_map():
            for key, _ in selector.select():
                if key.data.step():
                    selector.unregister(key.fileobj)
                    key.data.socket.close()


class _Pump:
    """One connection: each answer makes room for a request."""

    def __init__(self, connection: socket.socket, frame: bytes, requests: int) -> None:
        self.socket = connection
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = frame
        self._to_send = requests
        self._to_receive = requests
        self._answer_size = 0
        self._received = 0

    def begin(self, under_way: int) -> None:
        """The first answer says how large they all are."""
        self.socket.sendall(self._frame)
        size = int.from_bytes(self.socket.recv(4, socket.MSG_WAITALL), "big")
        self.socket.recv(size, socket.MSG_WAITALL)
        self._answer_size = 4 + size
        self._send(under_way)

    def _send(self, count: int) -> None:
        count = min(count, self._to_send)
        self._to_send -= count
        self.socket.sendall(self._frame * count)

    def step(self) -> bool:
        """Take what has come; True when all answers are there."""
        self._received += len(self.socket.recv(RECEIVED_AT_ONCE))
        answers, self._received = divmod(self._received, self._answer_size)
        self._to_receive -= answers
        self._send(answers)
        return self._to_receive <= 0
