"""Copies a cluster's metadata between the embedded tree and a ZooKeeper, in either direction.

Afterwards Kafka's nodes below the target's root are those of the source; other nodes of the target are not touched. An
ephemeral node in either tree means that a broker is running; nothing is copied then. Besides the data of nodes, the
counters behind sequence numbers are copied: the number of children ever created below the parents of sequential nodes,
and the version of `/brokers/seqid`.

Only the differences are written, so running an interrupted copy again completes it. `/controller_epoch` is deleted
first and created last: a target without it is incomplete. It also shows which tree is newer, because every election
increments it: a target of the same cluster must have a smaller epoch than the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from odradek.controller.tree.metadata_tree import (
    NO_OWNER,
    Create,
    Delete,
    GetChildren,
    GetData,
    Multi,
    Nodes,
    NoNode,
    SetData,
    WriteOperation,
    parent_path,
    value_of,
)
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import submit_all

TRANSACTION_OPERATIONS_MAX: Final = 1000
TRANSACTION_BYTES_MAX: Final = 512 * 1024
"""Half of ZooKeeper's default limit for one request (jute.maxbuffer)."""

_OPERATION_OVERHEAD_BYTES: Final = 128
"""Upper bound of an operation's size without path and data: header, lengths, ACL, chroot."""

_COUNTED_NODE: Final = "odradek-copy"


class CopyRefused(Exception):
    """The metadata cannot be copied; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """A persistent node: its data, its version, and how many children were ever created below it."""

    data: bytes | None
    version: int = 0
    children_created: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Kafka's nodes of a tree. `ephemeral`: the paths of its ephemeral nodes."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    ephemeral: tuple[str, ...] = ()

    @property
    def cluster_id(self) -> str | None:
        node = self.nodes.get(znodes.CLUSTER_ID)
        return None if node is None else znodes.decode_cluster_id(node.data)

    @property
    def controller_epoch(self) -> int:
        """-1 for an incomplete copy, and for a cluster that never had a controller."""
        node = self.nodes.get(znodes.CONTROLLER_EPOCH)
        return -1 if node is None else znodes.decode_controller_epoch(node.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The result: the cluster id, its number of nodes, and the number of writes to the target."""

    cluster_id: str
    nodes: int
    writes: int


async def copy_metadata(source: Nodes, target: Nodes, *, overwrite: bool = False) -> Copied:
    """Replace the target's metadata by the source's. Raises CopyRefused before anything is written.

    With `overwrite`, the target may belong to another cluster or be newer than the source.
    """
    wanted = await read_snapshot(source)
    found = await read_snapshot(target)
    for role, snapshot in (("source", wanted), ("target", found)):
        _check_unused(role, snapshot)
    if wanted.cluster_id is None:
        raise CopyRefused("the source holds no metadata of a cluster: it has no /cluster/id")
    writes = list(writes_between(wanted, found))
    if writes and not overwrite:
        _check_target_may_change(wanted, found)
    for transaction in transactions(writes):
        value_of(*await target.submit([transaction]))
    return Copied(cluster_id=wanted.cluster_id, nodes=len(wanted.nodes), writes=len(writes))


async def read_snapshot(tree: Nodes) -> Snapshot:
    """Read Kafka's nodes, level by level."""
    (root,) = await tree.submit([GetChildren("/")])
    if isinstance(root, NoNode):
        return Snapshot()
    nodes: dict[str, Node] = {}
    ephemeral: list[str] = []
    level = [f"/{name}" for name in value_of(root).names if name in znodes.TOP_LEVEL_NAMES]
    while level:
        parents = []
        for path, answer in zip(level, await submit_all(tree, [GetData(path) for path in level]), strict=True):
            data, stat = value_of(answer)
            if stat.ephemeral_owner != NO_OWNER:
                ephemeral.append(path)
                continue
            # ZooKeeper's cversion is the number of created plus deleted children.
            nodes[path] = Node(data, stat.version, (stat.cversion + stat.num_children) // 2)
            if stat.num_children:
                parents.append(path)
        below = await submit_all(tree, [GetChildren(path) for path in parents])
        level = [
            f"{path}/{name}" for path, answer in zip(parents, below, strict=True) for name in value_of(answer).names
        ]
    return Snapshot(nodes=nodes, ephemeral=tuple(ephemeral))


def _check_unused(role: str, snapshot: Snapshot) -> None:
    if snapshot.ephemeral:
        raise CopyRefused(
            f"the {role} is in use: {snapshot.ephemeral[0]} belongs to a session. Stop the brokers that use it; after "
            "a kill, wait until the session has timed out"
        )
    if znodes.CONTROLLER in snapshot.nodes:
        raise CopyRefused(f"the {role} is controlled by KRaft: {znodes.CONTROLLER} is a persistent node")


def _check_target_may_change(wanted: Snapshot, found: Snapshot) -> None:
    if not found.nodes:
        return
    if found.cluster_id is None:
        raise CopyRefused("the target holds metadata without a /cluster/id; --overwrite replaces it")
    if found.cluster_id != wanted.cluster_id:
        raise CopyRefused(
            f"the target belongs to the cluster {found.cluster_id}, the source is the cluster {wanted.cluster_id}; "
            "--overwrite replaces the target's metadata"
        )
    if found.controller_epoch >= wanted.controller_epoch and found.controller_epoch >= 0:
        raise CopyRefused(
            f"the target is not behind the source: its controller epoch is {found.controller_epoch}, that of the "
            f"source is {wanted.controller_epoch}; --overwrite replaces the target's metadata nevertheless"
        )


def writes_between(wanted: Snapshot, found: Snapshot) -> Iterator[WriteOperation]:
    """The writes that make `found` equal to `wanted`, in an order that can be interrupted; none if they are equal."""
    changes = [*_changed_nodes(wanted, found), *_missing_counts(wanted, found)]
    epoch, found_epoch = wanted.nodes.get(znodes.CONTROLLER_EPOCH), found.nodes.get(znodes.CONTROLLER_EPOCH)
    if not changes and (epoch and epoch.data) == (found_epoch and found_epoch.data):
        return
    if found_epoch is not None:
        yield Delete(znodes.CONTROLLER_EPOCH)
    yield from changes
    if epoch is not None:
        yield Create(znodes.CONTROLLER_EPOCH, epoch.data)


def _changed_nodes(wanted: Snapshot, found: Snapshot) -> Iterator[WriteOperation]:
    """The cluster id first, so that an interrupted copy already belongs to the cluster."""
    own = {znodes.CONTROLLER_EPOCH}
    first = [parent_path(znodes.CLUSTER_ID), znodes.CLUSTER_ID]
    for path in [*first, *sorted(wanted.nodes.keys() - own - set(first))]:
        data = wanted.nodes[path].data
        if path not in found.nodes:
            yield Create(path, data)
        elif found.nodes[path].data != data:
            yield SetData(path, data)
    for path in sorted(found.nodes.keys() - own - wanted.nodes.keys(), reverse=True):
        yield Delete(path)


def _missing_counts(wanted: Snapshot, found: Snapshot) -> Iterator[WriteOperation]:
    """Creations and deletions that raise the target's counters, so that it assigns no number of the source again."""
    absent = Node(None)
    for parent in znodes.SEQUENTIAL_PARENTS:
        if parent in wanted.nodes:
            created = sum(parent_path(path) == parent for path in wanted.nodes.keys() - found.nodes.keys())
            created += found.nodes.get(parent, absent).children_created
            for _ in range(wanted.nodes[parent].children_created - created):
                yield Create(f"{parent}/{_COUNTED_NODE}", None)
                yield Delete(f"{parent}/{_COUNTED_NODE}")
    sequence = wanted.nodes.get(znodes.BROKER_SEQUENCE_ID)
    if sequence is not None:
        written = found.nodes.get(znodes.BROKER_SEQUENCE_ID, Node(sequence.data))
        for _ in range(sequence.version - written.version - (written.data != sequence.data)):
            yield SetData(znodes.BROKER_SEQUENCE_ID, sequence.data)


def transactions(writes: list[WriteOperation]) -> Iterator[Multi]:
    """The writes in transactions within ZooKeeper's limits; a value above the limit is written alone."""
    batch: list[WriteOperation] = []
    size_bytes = 0
    for write in writes:
        data = write.data if isinstance(write, Create | SetData) else None
        write_bytes = len(write.path.encode()) + len(data or b"") + _OPERATION_OVERHEAD_BYTES
        if batch and (len(batch) == TRANSACTION_OPERATIONS_MAX or size_bytes + write_bytes > TRANSACTION_BYTES_MAX):
            yield Multi(tuple(batch))
            batch, size_bytes = [], 0
        batch.append(write)
        size_bytes += write_bytes
    if batch:
        yield Multi(tuple(batch))
