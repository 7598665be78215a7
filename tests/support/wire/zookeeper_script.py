"""Raw requests of ZooKeeper's protocol, and a client that sends them and returns the bytes that come back.

`masked` takes out what differs between two servers by nature: session ids and moments.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

NOTIFICATION_XID = -1
ANYONE = (31, "world", "anyone")
OPEN = (ANYONE,)

Acl = tuple[int, str | None, str | None]


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def buf(value: bytes | None) -> bytes:
    return i32(-1) if value is None else i32(len(value)) + value


def text(value: str | None) -> bytes:
    return buf(None if value is None else value.encode())


def texts(values: Sequence[str]) -> bytes:
    return i32(len(values)) + b"".join(map(text, values))


def flag(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def acls(values: Sequence[Acl] | None) -> bytes:
    if values is None:
        return i32(-1)
    return i32(len(values)) + b"".join(i32(perms) + text(scheme) + text(name) for perms, scheme, name in values)


def create(path: str | None, data: bytes | None = b"", flags: int = 0, acl: Sequence[Acl] | None = OPEN) -> bytes:
    return text(path) + buf(data) + acls(acl) + i32(flags)


def path_and_watch(path: str | None, watch: bool = False) -> bytes:
    return text(path) + flag(watch)


def path_and_version(path: str | None, version: int = -1) -> bytes:
    return text(path) + i32(version)


def set_data(path: str | None, data: bytes | None, version: int = -1) -> bytes:
    return text(path) + buf(data) + i32(version)


def set_acl(path: str | None, acl: Sequence[Acl] | None, version: int = -1) -> bytes:
    return text(path) + acls(acl) + i32(version)


def set_watches(zxid: int, data: Sequence[str], exist: Sequence[str], children: Sequence[str]) -> bytes:
    return i64(zxid) + texts(data) + texts(exist) + texts(children)


def auth(scheme: str, credentials: bytes) -> bytes:
    return i32(0) + text(scheme) + buf(credentials)


def multi(*operations: tuple[int, bytes]) -> bytes:
    headers = [i32(kind) + b"\0" + i32(-1) + body for kind, body in operations]
    return b"".join(headers) + i32(-1) + b"\1" + i32(-1)


class RawClient:
    """One connection. `session_id` and `password` are known once the session is there."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=10)
        self._answers = self._socket.makefile("rb")
        self._xid = 0
        self.session_id = 0
        self.password = b""

    def connect(
        self,
        timeout_ms: int = 8000,
        session_id: int = 0,
        password: bytes | None = bytes(16),
        zxid: int = 0,
        *,
        is_old: bool = False,
    ) -> bytes | None:
        """The answer without the password; None if the server closes the connection."""
        body = i32(0) + i64(zxid) + i32(timeout_ms) + i64(session_id) + buf(password)
        self.send(body if is_old else body + b"\0")
        answer = self.read()
        if answer is None:
            return None
        self.session_id = struct.unpack_from(">q", answer, 8)[0]
        self.password = answer[20:36]
        return answer[:20] + answer[36:]

    def send(self, frame: bytes) -> None:
        self._socket.sendall(i32(len(frame)) + frame)

    def send_bytes(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def read(self) -> bytes | None:
        """The next frame without its length; None at the end of the connection."""
        try:
            head = self._answers.read(4)
            return self._answers.read(struct.unpack(">i", head)[0]) if len(head) == 4 else None
        except ConnectionError:
            return None

    def ask(self, kind: int, body: bytes = b"", xid: int | None = None) -> list[bytes | None]:
        """Send a request; the frames up to its answer (events come before it), or up to the end."""
        self._xid += 1
        used = self._xid if xid is None else xid
        self.send(i32(used) + i32(kind) + body)
        frames: list[bytes | None] = []
        while True:
            frame = self.read()
            frames.append(frame)
            if frame is None or struct.unpack_from(">i", frame)[0] != NOTIFICATION_XID:
                return frames

    def read_to_the_end(self) -> list[bytes]:
        frames = []
        while (frame := self.read()) is not None:
            frames.append(frame)
        return frames

    def read_text(self) -> bytes:
        """Everything up to the end of the connection."""
        try:
            return self._answers.read()
        except ConnectionError:
            return b""

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


def masked(frame: bytes | None, session_ids: Sequence[int], since_ms: int) -> bytes | None:
    """The frame with session ids and moments since the start of the test replaced."""
    if frame is None:
        return None
    for number, session_id in enumerate(session_ids):
        frame = frame.replace(i64(session_id), b"session%d" % number)
    until_ms = int(time.time() * 1000) + 1000
    position = 0
    while position <= len(frame) - 8:
        if since_ms <= struct.unpack_from(">q", frame, position)[0] <= until_ms:
            frame = frame[:position] + b"_moment_" + frame[position + 8 :]
            position += 8
        else:
            position += 1
    return frame
