"""`broker.faults` of an `AsyncBroker`: the methods of `testing/faults.py`, to be awaited.

    async with broker.faults.not_leader("t", times=2) as fault:
        await producer.flush()
    await fault.assert_called(times=2)

Without `async with`, a fault is put in force by `await broker.faults.not_leader("t")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.broker.faults.rules.shorthands import SHORTHANDS
from odradek.testing import fault_checks as checks
from odradek.testing.node.questions import fault_questions  # noqa: F401 - registers its questions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from types import TracebackType

    from odradek.broker.faults.faults import RuleStatus
    from odradek.broker.faults.record import FaultEvent, FaultRecord

    Ask = Callable[..., Awaitable[object]]


class AsyncFault:
    """One rule in force."""

    def __init__(self, ask: Ask, number: int, name: str) -> None:
        self._ask = ask
        self._number = number
        self._name = name

    async def remove(self) -> None:
        """As `Fault.remove`."""
        await self._ask("remove_fault", number=self._number)

    async def disable(self) -> None:
        """Let the rule rest until `enable`."""
        await self._ask("enable_fault", number=self._number, enabled=False)

    async def enable(self) -> None:
        await self._ask("enable_fault", number=self._number, enabled=True)

    async def call_count(self) -> int:
        """How many requests the fault has changed."""
        return (await self._status()).fired

    async def calls(self) -> list[FaultEvent]:
        """The requests that the fault has changed, in order."""
        return cast("list[FaultEvent]", await self._ask("fault_events", number=self._number))

    async def assert_called(self, times: int | None = None) -> None:
        """Raises: AssertionError if the fault has changed no request, or not as many as `times`."""
        checks.check_called(self._name, await self._status(), times)

    async def assert_not_called(self) -> None:
        """Raises: AssertionError if the fault has changed a request."""
        checks.check_not_called(self._name, await self.calls())

    async def wait_called(self, times: int = 1, timeout: float = checks.WAIT_S) -> None:
        """Wait until the fault has changed so many requests. Raises: AssertionError when the time is over."""
        status = await self._ask("wait_fault", number=self._number, times=times, timeout_s=timeout)
        checks.check_waited(self._name, cast("RuleStatus", status), times, timeout)

    async def _status(self) -> RuleStatus:
        return cast("RuleStatus", await self._ask("fault_status", number=self._number))


class PendingFault:
    """A fault that is put in force by `await`, or for a block by `async with`."""

    def __init__(self, ask: Ask, plain: dict[str, object], name: str) -> None:
        self._ask = ask
        self._plain = plain
        self._name = name
        self._fault: AsyncFault | None = None

    def __await__(self) -> Generator[object, object, AsyncFault]:
        return self._add().__await__()

    async def __aenter__(self) -> AsyncFault:
        self._fault = await self._add()
        return self._fault

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._fault is not None
        await self._fault.remove()

    async def _add(self) -> AsyncFault:
        return AsyncFault(self._ask, cast("int", await self._ask("add_fault", plain=self._plain)), self._name)


class AsyncBrokerFaults:
    """The faults of a broker."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def add(self, action: str, /, **keys: object) -> PendingFault:
        """As `BrokerFaults.add`. Raises: RuleError, which names the key."""
        return self._pending({"action": action, **keys})

    def __getattr__(self, name: str) -> Callable[..., PendingFault]:
        checks.known_shorthand(name)
        return lambda first=None, /, **keys: self._pending(checks.shorthand(name, first, keys))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *SHORTHANDS})

    async def clear(self) -> None:
        """Remove all faults, forget what happened, end a replay."""
        await self._ask("clear_faults")

    async def rules(self) -> list[RuleStatus]:
        """What is in force, and what it has done."""
        return cast("list[RuleStatus]", await self._ask("fault_rules"))

    async def record(self) -> FaultRecord:
        """What happened since the first fault was added, or since `clear`."""
        return cast("FaultRecord", await self._ask("fault_record"))

    async def replay(self, record: FaultRecord | str) -> None:
        """As `BrokerFaults.replay`."""
        await self._ask("replay_faults", record=checks.record_of(record))

    async def assert_replayed(self) -> None:
        """Raises: AssertionError if a request differs from the record, or has not come."""
        checks.check_replayed(*cast("tuple[str | None, list[FaultEvent]]", await self._ask("replay_difference")))

    def _pending(self, plain: dict[str, object]) -> PendingFault:
        return PendingFault(self._ask, *checks.checked(plain))
