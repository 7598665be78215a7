"""`broker.transaction("id")`: the transactions of one transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.assertions import transaction_steps
from odradek.testing.assertions.asking import DEFAULT_TIMEOUT_S, answered, answered_later

if TYPE_CHECKING:
    from odradek.testing.assertions.asking import AsksLater, AsksNow
    from odradek.testing.assertions.transaction_questions import TransactionView


class Transaction:
    """One transactional id of a broker, which need not exist yet."""

    def __init__(self, broker: AsksNow, transactional_id: str) -> None:
        self._broker = broker
        self.transactional_id = transactional_id

    def describe(self) -> TransactionView | None:
        """The transactional id now; None if the broker does not know it."""
        return answered(self._broker, transaction_steps.view(self.transactional_id))

    def wait_for_state(self, state: str, *, timeout: float = DEFAULT_TIMEOUT_S) -> TransactionView:
        """Wait until it is in this state: `Ongoing`. Raises: WaitTimedOut, BrokerStopped."""
        return self._wait(transaction_steps.in_state(state), f"to be {state}", timeout)

    def wait_for_committed(self, count: int = 1, *, timeout: float = DEFAULT_TIMEOUT_S) -> TransactionView:
        """Wait until it has committed so many transactions since the test began, and their markers are written.

        Raises: WaitTimedOut, BrokerStopped.
        """
        return self._wait(lambda each: each.commits >= count, f"to commit, {count} in all", timeout)

    def wait_for_aborted(self, count: int = 1, *, timeout: float = DEFAULT_TIMEOUT_S) -> TransactionView:
        """The same for aborted transactions."""
        return self._wait(lambda each: each.aborts >= count, f"to abort, {count} in all", timeout)

    def _wait(self, where: transaction_steps.TransactionWhere, wanted: str, timeout: float) -> TransactionView:
        return answered(self._broker, transaction_steps.wait_for(self.transactional_id, where, wanted, timeout))


class AsyncTransaction:
    """The same, for coroutines."""

    def __init__(self, broker: AsksLater, transactional_id: str) -> None:
        self._broker = broker
        self.transactional_id = transactional_id

    async def describe(self) -> TransactionView | None:
        """See `Transaction.describe`."""
        return await answered_later(self._broker, transaction_steps.view(self.transactional_id))

    async def wait_for_state(self, state: str, *, timeout: float = DEFAULT_TIMEOUT_S) -> TransactionView:
        """See `Transaction.wait_for_state`."""
        return await self._wait(transaction_steps.in_state(state), f"to be {state}", timeout)

    async def wait_for_committed(self, count: int = 1, *, timeout: float = DEFAULT_TIMEOUT_S) -> TransactionView:
        """See `Transaction.wait_for_committed`."""
        return await self._wait(lambda each: each.commits >= count, f"to commit, {count} in all", timeout)

    async def wait_for_aborted(self, count: int = 1, *, timeout: float = DEFAULT_TIMEOUT_S) -> TransactionView:
        """See `Transaction.wait_for_aborted`."""
        return await self._wait(lambda each: each.aborts >= count, f"to abort, {count} in all", timeout)

    async def _wait(self, where: transaction_steps.TransactionWhere, wanted: str, timeout: float) -> TransactionView:
        return await answered_later(
            self._broker, transaction_steps.wait_for(self.transactional_id, where, wanted, timeout)
        )
