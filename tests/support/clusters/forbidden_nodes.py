"""Nodes that a client of the metadata tree may not read, as by their ACLs in ZooKeeper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from odradek.controller.tree.metadata_tree import GetData, MetadataTree, Operation, TreeError

ResultT = TypeVar("ResultT")


def forbidden_nodes(tree: MetadataTree) -> set[str]:
    """The paths of nodes that the client may not read from now on; none at first."""
    forbidden: set[str] = set()
    submit = tree.submit

    async def refusing(operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        results = await submit(operations)
        return [
            TreeError(operation.path, f"ZooKeeper: NoAuthError for {operation.path}")
            if isinstance(operation, GetData) and operation.path in forbidden
            else result
            for operation, result in zip(operations, results, strict=True)
        ]

    tree.submit = refusing  # type: ignore[method-assign]
    return forbidden
