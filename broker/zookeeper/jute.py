"""The encoding of ZooKeeper's messages: integers in network order; strings, buffers and vectors behind their length.

A length of -1 means null. Everything that a client sends is bounded: a length may not be longer than the message, so
the decoded values take memory in proportion to it.

ZooKeeper: BinaryInputArchive, BinaryOutputArchive, zookeeper.jute.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from odradek.controller.tree.metadata_tree import Stat

NULL: Final = -1

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_REPLY: Final = struct.Struct(">iqi")
_MULTI: Final = struct.Struct(">i?i")

ItemT = TypeVar("ItemT")


class JuteError(Exception):
    """The bytes are not a message of the expected form. `body`: what ZooKeeper sends behind the error nevertheless."""

    def __init__(self, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.body = body


class Identity(NamedTuple):
    """Who a client is, or whom an ACL names. ZooKeeper: Id."""

    scheme: str | None
    id: str | None


class Acl(NamedTuple):
    """`permissions`: bits of `Permission`."""

    permissions: int
    identity: Identity


class Reader:
    """Reads values from a message, one after the other. Raises JuteError behind its end."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._position

    def _take(self, size: int) -> bytes:
        start = self._position
        if size < 0 or size > len(self._data) - start:
            raise JuteError(f"{size} bytes are expected, {len(self._data) - start} are there")
        self._position = start + size
        return self._data[start : start + size]

    def integer(self) -> int:
        return int(_INT.unpack(self._take(4))[0])

    def long(self) -> int:
        return int(_LONG.unpack(self._take(8))[0])

    def boolean(self) -> bool:
        return self._take(1) != b"\0"

    def buffer(self) -> bytes | None:
        length = self.integer()
        return None if length == NULL else self._take(length)

    def string(self) -> str | None:
        """Malformed UTF-8 becomes U+FFFD, as in Java."""
        raw = self.buffer()
        return None if raw is None else raw.decode("utf-8", "replace")

    def vector(self, item: Callable[[], ItemT], smallest: int) -> list[ItemT] | None:
        """`smallest`: the bytes of the smallest item; a count that cannot fit is refused before anything is read."""
        count = self.integer()
        if count == NULL:
            return None
        if count * smallest > self.remaining:
            raise JuteError(f"{count} items do not fit into {self.remaining} bytes")
        return [item() for _ in range(count)]

    def strings(self) -> list[str]:
        """A vector of strings; null is an empty one."""
        return [value or "" for value in self.vector(self.string, 4) or ()]

    def acls(self) -> list[Acl] | None:
        return self.vector(self._acl, 12)

    def _acl(self) -> Acl:
        return Acl(self.integer(), Identity(self.string(), self.string()))


def integer(value: int) -> bytes:
    return _INT.pack(value)


def buffer(value: bytes | None) -> bytes:
    return _INT.pack(NULL) if value is None else _INT.pack(len(value)) + value


def string(value: str | None) -> bytes:
    return buffer(None if value is None else value.encode("utf-8", "replace"))


def strings(values: Sequence[str]) -> bytes:
    return _INT.pack(len(values)) + b"".join(map(string, values))


def identity(value: Identity) -> bytes:
    return string(value.scheme) + string(value.id)


def acls(values: Sequence[Acl]) -> bytes:
    return _INT.pack(len(values)) + b"".join(_INT.pack(acl.permissions) + identity(acl.identity) for acl in values)


def stat(value: Stat, acl_version: int) -> bytes:
    return _STAT.pack(
        value.czxid,
        value.mzxid,
        value.ctime_ms,
        value.mtime_ms,
        value.version,
        value.cversion,
        acl_version,
        value.ephemeral_owner,
        value.data_length,
        value.num_children,
        value.pzxid,
    )


def multi_header(kind: int, error: int, *, is_done: bool = False) -> bytes:
    return _MULTI.pack(kind, is_done, error)


def reply(xid: int, zxid: int, error: int, body: bytes = b"") -> bytes:
    """A whole frame: length, header, body."""
    return _INT.pack(_REPLY.size + len(body)) + _REPLY.pack(xid, zxid, error) + body


def frame(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body
