"""The port to the metadata tree: ZooKeeper's data model, in batches of operations.

The tree holds small values at slash-separated paths. The controller, the elections and the state machines use only
this port; `embedded_tree` implements it with SQLite for one node and `zookeeper_tree` with a ZooKeeper client. The
contract is ZooKeeper's; one contract test suite tests both implementations:

* **Operations come in batches.** A batch is applied in order, and each operation succeeds or fails by itself. `Multi`
  is one operation that is applied as a whole or not at all. Results are returned only after the batch is durable.
* **Versions.** A node's `version` counts the changes of its data and starts at 0. `SetData`, `Delete` and `Check`
  take the expected version; `ANY_VERSION` matches every version. A transaction id (zxid) grows with every write and
  never repeats, not even after a restart; `czxid` is the zxid that created the node (Kafka's broker epoch).
* **Ephemeral nodes** exist as long as the session that created them, and have no children.
* **Sequential nodes** get a ten-digit suffix: the number of children ever created below the parent.
* **Watches fire once.** `GetData` and `Exists` watch the node's data, creation and deletion; `GetChildren` watches the
  list of children and the deletion of the node. `GetData` and `GetChildren` set no watch on a node that does not exist;
  `Exists` does. A watcher that is set several times on one node is called once, and before its client can read the
  change.
* **A lost session** loses its ephemeral nodes and its watches. The next session begins only after every
  `SessionListener` has handled the loss.

Kafka: ZooKeeperClient.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from odradek.controller.model.compared_by_fields import ComparedByFields

ANY_VERSION: Final = -1
NO_OWNER: Final = 0


class TreeError(Exception):
    """The tree refused an operation or could not apply it; `path`: the node of the operation."""

    def __init__(self, path: str = "", message: str = "") -> None:
        super().__init__(message or path)
        self.path = path


class NoNode(TreeError):
    """The node, or the parent of a node to be created, does not exist."""


class NodeExists(TreeError):
    """A node to be created exists already."""


class BadVersion(TreeError):
    """The node does not have the expected version."""


class NotEmpty(TreeError):
    """A node to be deleted has children."""


class NoChildrenForEphemerals(TreeError):
    """The parent of a node to be created is ephemeral."""


class BadArguments(TreeError):
    """The path is malformed, or the root was to be deleted."""


class SessionExpired(TreeError):
    """The session ended before the operation was applied."""


class ConnectionLoss(TreeError):
    """The store cannot be reached; the operation may have been applied or not."""


UNANSWERED: Final = (SessionExpired, ConnectionLoss)
"""The same operation may succeed later. Any other error is the answer to it: to ask again is of no use."""


class StorageFull(TreeError):
    """The store has no space for the write, which was not applied. Reads work, and writes when there is space again."""


class MultiFailed(TreeError):
    """A `Multi` was not applied. `index`: the number of the operation that failed; `cause`: its error."""

    def __init__(self, index: int, cause: TreeError) -> None:
        super().__init__(cause.path, f"operation {index}: {type(cause).__name__} {cause.path}")
        self.index = index
        self.cause = cause


class Stat(NamedTuple):
    """The metadata of a node, as in ZooKeeper's Stat. `data_length` in bytes."""

    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int


class DataAndStat(NamedTuple):
    """The data of a node and its stat."""

    data: bytes | None
    stat: Stat


class Children(NamedTuple):
    """The names (not paths) of a node's children, sorted, and the stat of the node."""

    names: tuple[str, ...]
    stat: Stat


class Created(NamedTuple):
    """The path of a created node (with the number of a sequential node) and its stat."""

    path: str
    stat: Stat


class CreateMode(Enum):
    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    PERSISTENT_SEQUENTIAL = "persistent sequential"
    EPHEMERAL_SEQUENTIAL = "ephemeral sequential"

    @property
    def is_ephemeral(self) -> bool:
        return self in (CreateMode.EPHEMERAL, CreateMode.EPHEMERAL_SEQUENTIAL)

    @property
    def is_sequential(self) -> bool:
        return self in (CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL)


class WatchEventType(Enum):
    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


class WatchEvent(NamedTuple):
    """The change that a watch has seen; the watch is removed."""

    type: WatchEventType
    path: str


Watcher: TypeAlias = Callable[[WatchEvent], None]

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class Operation(ComparedByFields, Generic[ResultT_co]):
    """One request to the tree; the type parameter is its result. Two that ask for the same are equal."""

    __slots__: tuple[str, ...] = ()


class GetData(Operation[DataAndStat]):
    """Read the data of a node; fails with NoNode."""

    __slots__ = __match_args__ = ("path", "watcher")

    def __init__(self, path: str, watcher: Watcher | None = None) -> None:
        self.path = path
        self.watcher = watcher


class Exists(Operation["Stat | None"]):
    """Read the node's stat; None if the node does not exist."""

    __slots__ = __match_args__ = ("path", "watcher")

    def __init__(self, path: str, watcher: Watcher | None = None) -> None:
        self.path = path
        self.watcher = watcher


class GetChildren(Operation[Children]):
    """Read the children of a node; fails with NoNode."""

    __slots__ = __match_args__ = ("path", "watcher")

    def __init__(self, path: str, watcher: Watcher | None = None) -> None:
        self.path = path
        self.watcher = watcher


class Create(Operation[Created]):
    """Create a node below an existing one; fails with NodeExists or NoNode. A sequential node gets a number suffix."""

    __slots__ = __match_args__ = ("path", "data", "mode")

    def __init__(self, path: str, data: bytes | None = None, mode: CreateMode = CreateMode.PERSISTENT) -> None:
        self.path = path
        self.data = data
        self.mode = mode


class SetData(Operation[Stat]):
    """Write the data of a node; fails with BadVersion if `version` is not the node's."""

    __slots__ = __match_args__ = ("path", "data", "version")

    def __init__(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> None:
        self.path = path
        self.data = data
        self.version = version


class Delete(Operation[None]):
    """Delete a node without children; fails with BadVersion if `version` is not the node's."""

    __slots__ = __match_args__ = ("path", "version")

    def __init__(self, path: str, version: int = ANY_VERSION) -> None:
        self.path = path
        self.version = version


class Check(Operation[None]):
    """Check that the node exists in the expected version; for `Multi`."""

    __slots__ = __match_args__ = ("path", "version")

    def __init__(self, path: str, version: int) -> None:
        self.path = path
        self.version = version


WriteOperation: TypeAlias = Create | SetData | Delete | Check
WriteResult: TypeAlias = str | Stat | None
"""The result of one operation of a `Multi`: the path of a Create (ZooKeeper sends no stat), the stat of a SetData."""


class Multi(Operation["tuple[WriteResult, ...]"]):
    """Writes that are applied together under one zxid, or fail together with MultiFailed."""

    __slots__ = __match_args__ = ("operations",)

    def __init__(self, operations: tuple[WriteOperation, ...]) -> None:
        self.operations = operations


class SessionListener(Protocol):
    """Called when the tree's session is lost and when the next one begins. Kafka: StateChangeHandler."""

    async def session_lost(self) -> None:
        """The session is lost. The next session begins after this has returned."""

    def session_started(self) -> None:
        """A new session has begun after a lost one."""


class Nodes(Protocol):
    """Applies batches of operations."""

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        """Apply a batch. A refused operation has its error as result; ConnectionLoss and SessionExpired are raised."""


def value_of(result: ResultT | TreeError) -> ResultT:
    """The result of an operation; raises its error.

    A frame that raises an error of its own variable is in the traceback of the error: such a circle stays in memory
    until the next collection of garbage. So the variable is deleted here, and the caller should not have one either.
    """
    if isinstance(result, TreeError):
        try:
            raise result
        finally:
            del result
    return result


class MetadataTree(Nodes, Protocol):
    """One client of the tree, with its session."""

    @property
    def session_id(self) -> int:
        """The id of the current session, as it appears in `Stat.ephemeral_owner`."""

    @property
    def is_disconnected(self) -> bool:
        """Whether the tree has no connection now, so that operations wait."""
        return False

    async def run(self, operation: Operation[ResultT]) -> ResultT:
        """Apply one operation and return its result; raises its error."""
        return value_of(*await self.submit((operation,)))

    def add_session_listener(self, listener: SessionListener) -> None: ...

    async def close(self) -> None:
        """End the session, which deletes its ephemeral nodes."""


def parent_path(path: str) -> str:
    """The path of the parent: "/a" for "/a/b" and "/" for "/a"."""
    return path[: path.rindex("/")] or "/"


_INVALID: Final = "[\\0-\\x1f\\x7f-\\x9f\\ud800-\\uf8ff\\ufff0-\\U0010ffff]"
"""ZooKeeper's rule for UTF-16: no control characters, surrogates, private use, or anything above U+FFEF."""
_INVALID_CHARACTER: Final = re.compile(_INVALID)
_REFUSED: Final = re.compile(
    rf"(?<=/)(?:(?P<empty>/)|\.?(?P<relative>\.)(?=/|\Z))|(?P<null>\0)|(?P<invalid>{_INVALID})"
)
"""What ZooKeeper refuses in a path. The last character is the one that it names."""
_REASONS: Final = {
    "empty": "empty node name specified",
    "relative": "relative paths not allowed",
    "null": "null character not allowed",
    "invalid": "invalid character",
}


def check_path(path: str, *, is_sequential: bool = False) -> None:
    """Raise BadArguments, with ZooKeeper's message, if ZooKeeper would not accept the path.

    ZooKeeper: PathUtils.validatePath.
    """
    if is_sequential:
        path += "1"
    if path == "/":
        return
    if not path:
        raise BadArguments(path, "Path length must be > 0")
    if not path.startswith("/"):
        raise BadArguments(path, "Path must start with / character")
    if path.endswith("/"):
        raise BadArguments(path, "Path must not end with / character")
    if "//" not in path and "/." not in path and _INVALID_CHARACTER.search(path) is None:
        return  # most paths; the search below takes longer
    refused = _REFUSED.search(path)
    if refused is not None:
        reason = _REASONS[refused.lastgroup or ""]
        raise BadArguments(path, f'Invalid path string "{path}" caused by {reason} @{refused.end() - 1}')
