"""Waiting for transactions, as steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.coordinator.transaction.states import STATES_BY_NAME
from odradek.testing.assertions.asking import Deadline, ask, check_name
from odradek.testing.assertions.transaction_questions import TransactionsAnswer, TransactionView
from odradek.testing.errors import WaitTimedOut

if TYPE_CHECKING:
    from odradek.testing.assertions.asking import Steps

TransactionWhere = Callable[[TransactionView], object]


def views() -> Steps[list[TransactionView]]:
    """All transactional ids."""
    answer = yield from ask(TransactionsAnswer, "transactions")
    return list(answer.transactions)


def view(transactional_id: str) -> Steps[TransactionView | None]:
    """One transactional id; None if the broker does not know it."""
    answer = yield from ask(TransactionsAnswer, "transactions", transactional_id=transactional_id)
    return next(iter(answer.transactions), None)


def in_state(state: str) -> TransactionWhere:
    """Takes the transactional id in this state. Raises: ValueError for an unknown state."""
    check_name(state, STATES_BY_NAME, "state of a transaction")
    return lambda each: each.state == state


def wait_for(transactional_id: str, where: TransactionWhere, wanted: str, timeout_s: float) -> Steps[TransactionView]:
    """The transactional id, when `where` takes it. `wanted`: the same in words. Raises: WaitTimedOut, BrokerStopped."""
    deadline = Deadline(timeout_s)
    after: int | None = None
    while True:
        answer = yield from ask(
            TransactionsAnswer,
            "transactions",
            transactional_id=transactional_id,
            after=after,
            wait_s=0 if after is None else deadline.left_s,
        )
        for found in filter(where, answer.transactions):
            return found
        if after is not None and deadline.is_over:
            there = yield from views()
            lines = "".join(f"\n    {line_of(each)}" for each in there) or " no transactional id"
            raise WaitTimedOut(f"Waited {deadline} for transactional id {transactional_id} {wanted}; there is:{lines}")
        after = answer.changes


def line_of(transaction: TransactionView) -> str:
    """The transaction in one line."""
    partitions = ", ".join(f"{topic}-{partition}" for topic, partition in transaction.partitions)
    age = "" if transaction.age_ms is None else f", open for {transaction.age_ms} ms of {transaction.timeout_ms} ms"
    return (
        f"{transaction.transactional_id}: {transaction.state}, producer {transaction.producer_id} epoch "
        f"{transaction.producer_epoch}, {transaction.commits} committed, {transaction.aborts} aborted{age}"
        f"{' in ' + partitions if partitions else ''}"
    )
