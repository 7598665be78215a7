"""The port to the metadata tree: ZooKeeper's data model, in batches of operations.

The tree holds small values at slash-separated paths. The controller, the elections and the state machines know this
port only; `embedded_tree` implements it with SQLite for one node and `zookeeper_tree` with a ZooKeeper client. What
follows is ZooKeeper's contract, and one contract test suite holds every implementation to it:

* **Operations come in batches.** A batch is applied in order, and each operation succeeds or fails by itself. `Multi`
  is one operation that is applied as a whole or not at all. An implementation answers a batch only after it is
  durable.
* **Versions.** A node's `version` counts the changes of its data and starts at 0. `SetData`, `Delete` and `Check`
  take the version they expect; `ANY_VERSION` expects nothing. A transaction id (zxid) grows with every write and
  never repeats, not even over a restart; `czxid` is the one that created the node (Kafka's broker epoch).
* **Ephemeral nodes** live as long as the session that created them, and have no children.
* **Sequential nodes** get a ten-digit suffix: how many children have ever been created under the parent.
* **Watches are one-shot** and see each change once. `GetData` and `Exists` watch the node's data, creation and
  deletion; `GetChildren` watches the list of children and the deletion of the node. `GetData` and `GetChildren` leave
  no watch on a node that does not exist; `Exists` does. A watcher that is set several times on one node is called
  once, and a client hears of a change before it can read it.
* **A lost session** takes its ephemeral nodes and its watches with it. The tree first lets every `SessionListener`
  finish what it does about the loss and only then opens the next session.

Answers to ZooKeeper's client API and to Kafka's `ZooKeeperClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

ANY_VERSION: Final = -1
NO_OWNER: Final = 0


class TreeError(Exception):
    """The tree refused or could not carry out an operation; `path` is the node concerned."""

    def __init__(self, path: str = "", message: str = "") -> None:
        super().__init__(message or path)
        self.path = path


class NoNode(TreeError):
    """The node, or the parent of a node to be created, does not exist."""


class NodeExists(TreeError):
    """A node to be created is there already."""


class BadVersion(TreeError):
    """The node has another version than the one expected."""


class NotEmpty(TreeError):
    """A node to be deleted has children."""


class NoChildrenForEphemerals(TreeError):
    """The parent of a node to be created is ephemeral."""


class BadArguments(TreeError):
    """The path is malformed, or the root was to be deleted."""


class SessionExpired(TreeError):
    """The session ended before the operation was carried out."""


class ConnectionLoss(TreeError):
    """The store cannot be reached; whether the operation was carried out is not known."""


class StorageFull(TreeError):
    """The store has no room for the write, which was not carried out. Reads go on, and writes when there is room."""


class MultiFailed(TreeError):
    """A `Multi` was not applied. `index` is the operation that failed and `cause` what it failed with."""

    def __init__(self, index: int, cause: TreeError) -> None:
        super().__init__(cause.path, f"operation {index}: {type(cause).__name__} {cause.path}")
        self.index = index
        self.cause = cause


class Stat(NamedTuple):
    """What the tree knows about a node besides its data."""

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
    """What a node holds, and its stat."""

    data: bytes | None
    stat: Stat


class Children(NamedTuple):
    """The names (not paths) of a node's children, sorted, and the stat of the node."""

    names: tuple[str, ...]
    stat: Stat


class Created(NamedTuple):
    """Where a node was created: for a sequential node the path with its number."""

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
    """What a watch saw, once: the watch is gone with it."""

    type: WatchEventType
    path: str


Watcher: TypeAlias = Callable[[WatchEvent], None]

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class Operation(Generic[ResultT_co]):
    """One request to the tree; the type parameter is what it answers."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class GetData(Operation[DataAndStat]):
    """What a node holds; fails with NoNode."""

    path: str
    watcher: Watcher | None = None


@dataclass(frozen=True, slots=True)
class Exists(Operation["Stat | None"]):
    """The node's stat, or None where GetData would fail with NoNode."""

    path: str
    watcher: Watcher | None = None


@dataclass(frozen=True, slots=True)
class GetChildren(Operation[Children]):
    """The children of a node; fails with NoNode."""

    path: str
    watcher: Watcher | None = None


@dataclass(frozen=True, slots=True)
class Create(Operation[Created]):
    """A new node below one that exists; a sequential one gets a number at the end of its path."""

    path: str
    data: bytes | None = None
    mode: CreateMode = CreateMode.PERSISTENT


@dataclass(frozen=True, slots=True)
class SetData(Operation[Stat]):
    """What a node holds from now on; fails with BadVersion where `version` is not the node's."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete(Operation[None]):
    """Removes a node without children; fails with BadVersion where `version` is not the node's."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check(Operation[None]):
    """Succeeds when the node exists in the expected version; meant for `Multi`."""

    path: str
    version: int


WriteOperation: TypeAlias = Create | SetData | Delete | Check
WriteResult: TypeAlias = str | Stat | None
"""What one operation of a `Multi` answers: a Create its path (ZooKeeper sends no stat with it), a SetData the stat."""


@dataclass(frozen=True, slots=True)
class Multi(Operation["tuple[WriteResult, ...]"]):
    """Writes that are applied together under one zxid, or fail together with MultiFailed."""

    operations: tuple[WriteOperation, ...]


class SessionListener(Protocol):
    """Told about the life of the tree's session."""

    async def session_lost(self) -> None:
        """The session is gone. No new one begins before this returns."""

    def session_started(self) -> None:
        """A new session took the place of the lost one."""


class Nodes(Protocol):
    """What takes batches of operations."""

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        """Carry out a batch. A refused operation yields its error; ConnectionLoss and SessionExpired are raised."""


class MetadataTree(Nodes, Protocol):
    """One client of the tree, with its session."""

    @property
    def session_id(self) -> int:
        """The id of the current session, as it appears in `Stat.ephemeral_owner`."""

    @property
    def is_away(self) -> bool:
        """Whether there is nobody now who would answer: what is asked waits."""
        return False

    async def run(self, operation: Operation[ResultT]) -> ResultT:
        """Carry out one operation, raising its error."""
        (result,) = await self.submit((operation,))
        if isinstance(result, TreeError):
            raise result
        return result

    def add_session_listener(self, listener: SessionListener) -> None: ...

    async def close(self) -> None:
        """End the session, and with it the ephemeral nodes."""


def parent_path(path: str) -> str:
    """The path above: "/a" for "/a/b" and "/" for "/a"."""
    return path[: path.rindex("/")] or "/"


def check_path(path: str, *, is_sequential: bool = False) -> None:
    """Raise BadArguments unless the path is one ZooKeeper accepts."""
    if is_sequential:
        path += "1"
    if path == "/":
        return
    if not path.startswith("/") or path.endswith("/"):
        raise BadArguments(path, f"Invalid path {path!r}: it must begin with a slash and not end with one")
    for name in path[1:].split("/"):
        if name in ("", ".", "..") or not name.isprintable():
            raise BadArguments(path, f"Invalid path {path!r}: bad node name {name!r}")
