"""Writes of an active controller, each in a transaction with a check of the controller's fencing token.

The token is the version of `/controller_epoch`. Each election changes it, so a write of a replaced controller
fails and raises ControllerMoved.

A transaction costs the client and the server about as much with a hundred writes as with one, so writes share
transactions. The refusal of one write refuses the whole transaction; its writes are then applied again, each in a
transaction of its own. So the nodes are the same as with a transaction for each write.

Kafka: KafkaZkClient.wrapRequestWithControllerEpochCheck.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.tree.metadata_tree import (
    Check,
    Create,
    MetadataTree,
    Multi,
    MultiFailed,
    SetData,
    TreeError,
    WriteOperation,
    WriteResult,
)
from odradek.controller.znodes import znodes

WRITES_PER_TRANSACTION_MAX: Final = 100
TRANSACTION_BYTES_MAX: Final = 64 * 1024
"""Of the paths and the data of joined writes: far below the largest request that a server accepts, 1 MiB by default. A
larger write has a transaction of its own.
"""
TRANSACTIONS_PER_BATCH_MAX: Final = 10
"""Between two batches, operations of others are applied."""

_Transaction: TypeAlias = tuple[WriteOperation, ...]


async def write_fenced(
    tree: MetadataTree, epoch_zk_version: int, operations: Iterable[WriteOperation]
) -> list[WriteResult | TreeError]:
    """Apply writes in order; each succeeds or fails by itself. Raises ControllerMoved if the token is stale."""
    check = Check(znodes.CONTROLLER_EPOCH, epoch_zk_version)
    transactions = _transactions(check, operations)
    results: list[WriteResult | TreeError] = []
    while some := list(islice(transactions, TRANSACTIONS_PER_BATCH_MAX)):
        results += await _apply(tree, some)
    return results


async def _apply(tree: MetadataTree, transactions: Sequence[_Transaction]) -> list[WriteResult | TreeError]:
    results: list[WriteResult | TreeError] = []
    answers = await tree.submit([Multi(transaction) for transaction in transactions])
    for transaction, answer in zip(transactions, answers, strict=True):
        check, *writes = transaction
        if not isinstance(answer, TreeError):
            results += answer[1:]
        elif not isinstance(answer, MultiFailed):
            raise answer
        elif answer.index == 0:
            raise ControllerMoved(f"{check.path} is no longer in the version of this controller's election")
        elif len(writes) == 1:
            results.append(answer.cause)
        else:
            results += await _apply(tree, [(check, write) for write in writes])
    return results


def _transactions(check: Check, operations: Iterable[WriteOperation]) -> Iterator[_Transaction]:
    """Joint transactions within the limits of their count and size."""
    joined: list[WriteOperation] = [check]
    joined_bytes = 0
    for operation in operations:
        data = operation.data if isinstance(operation, Create | SetData) else None
        size_bytes = len(operation.path) + len(data or b"")
        if len(joined) > WRITES_PER_TRANSACTION_MAX or (
            len(joined) > 1 and joined_bytes + size_bytes > TRANSACTION_BYTES_MAX
        ):
            yield tuple(joined)
            joined, joined_bytes = [check], 0
        joined.append(operation)
        joined_bytes += size_bytes
    if len(joined) > 1:
        yield tuple(joined)
