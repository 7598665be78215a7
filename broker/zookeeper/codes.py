"""The numbers of ZooKeeper's protocol: requests, errors, permissions, events.

ZooKeeper: ZooDefs.OpCode, KeeperException.Code, ZooDefs.Perms, Watcher.Event.EventType.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final


class OpCode(IntEnum):
    """The types of requests that a server answers."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CLOSE_SESSION = -11


ERROR_RESULT: Final = -1
"""The type of a result of a multi that is an error."""

NOTIFICATION_XID: Final = -1
PING_XID: Final = -2
NOTIFICATION_ZXID: Final = -1

SYNC_CONNECTED: Final = 3
"""The state of the client in an event. ZooKeeper: Watcher.Event.KeeperState.SyncConnected."""


class Code(IntEnum):
    """The errors that a server answers with."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    NO_WATCHER = -121
    RECONFIG_DISABLED = -123


WORDS: Final = frozenset(
    (
        *("conf", "cons", "crst", "dirs", "dump", "envi", "ruok", "srst", "srvr", "stat", "wchc", "wchp", "wchs"),
        *("mntr", "isro", "gtmk", "stmk", "hash"),
    )
)
"""The four-letter words that ZooKeeper knows. ZooKeeper: FourLetterCommands."""


def is_word(first_bytes: bytes) -> bool:
    """Whether the first four bytes of a connection are a word, and not the length of a request."""
    return first_bytes.isascii() and first_bytes.decode() in WORDS


class Permission(IntFlag):
    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16


class EventType(IntEnum):
    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class LimitExceeded(Exception):
    """A request that takes more memory than one client may take: its connection is closed."""


class Refused(Exception):
    """A request that is answered with an error. ZooKeeper: KeeperException."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code
