"""`broker.faults`: faults on command, used as mocks are.

    with broker.faults.not_leader("t", times=2) as fault:
        producer.flush()
    fault.assert_called(times=2)

Each name in `broker/faults/rules/shorthands.py` is a method here; `add` takes any action. A fault that is not used as a
context manager stays until it is removed, or until `clear` or `reset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from odradek.broker.faults.rules.shorthands import SHORTHANDS
from odradek.testing import fault_checks as checks
from odradek.testing.node.questions import fault_questions  # noqa: F401 - registers its questions

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from odradek.broker.faults.faults import RuleStatus
    from odradek.broker.faults.record import FaultEvent, FaultRecord

    Ask = Callable[..., object]


class Fault:
    """One rule in force. As a context manager it is removed at the end of the block."""

    def __init__(self, ask: Ask, number: int, name: str) -> None:
        self._ask = ask
        self._number = number
        self._name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """End the fault. Answers that it has delayed still come, and it can still be asked what it did."""
        self._ask("remove_fault", number=self._number)

    def disable(self) -> None:
        """Let the rule rest until `enable`."""
        self._ask("enable_fault", number=self._number, enabled=False)

    def enable(self) -> None:
        self._ask("enable_fault", number=self._number, enabled=True)

    @property
    def call_count(self) -> int:
        """How many requests the fault has changed."""
        return self._status().fired

    @property
    def called(self) -> bool:
        return self.call_count > 0

    @property
    def calls(self) -> list[FaultEvent]:
        """The requests that the fault has changed, in order."""
        return cast("list[FaultEvent]", self._ask("fault_events", number=self._number))

    def assert_called(self, times: int | None = None) -> None:
        """Raises: AssertionError if the fault has changed no request, or not as many as `times`."""
        checks.check_called(self._name, self._status(), times)

    def assert_not_called(self) -> None:
        """Raises: AssertionError if the fault has changed a request."""
        checks.check_not_called(self._name, self.calls)

    def wait_called(self, times: int = 1, timeout: float = checks.WAIT_S) -> None:
        """Wait until the fault has changed so many requests. Raises: AssertionError when the time is over."""
        status = self._ask("wait_fault", number=self._number, times=times, timeout_s=timeout)
        checks.check_waited(self._name, cast("RuleStatus", status), times, timeout)

    def _status(self) -> RuleStatus:
        return cast("RuleStatus", self._ask("fault_status", number=self._number))


class BrokerFaults:
    """The faults of a broker."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def add(self, action: str, /, **keys: object) -> Fault:
        """Put a rule in force: an action or a shorthand, and its keys. Raises: RuleError, which names the key."""
        return self._added({"action": action, **keys})

    def __getattr__(self, name: str) -> Callable[..., Fault]:
        checks.known_shorthand(name)
        return lambda first=None, /, **keys: self._added(checks.shorthand(name, first, keys))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *SHORTHANDS})

    def clear(self) -> None:
        """Remove all faults, forget what happened, end a replay."""
        self._ask("clear_faults")

    def rules(self) -> list[RuleStatus]:
        """What is in force, and what it has done."""
        return cast("list[RuleStatus]", self._ask("fault_rules"))

    def record(self) -> FaultRecord:
        """What happened since the first fault was added, or since `clear`."""
        return cast("FaultRecord", self._ask("fault_record"))

    def replay(self, record: FaultRecord | str) -> None:
        """Have the same happen to the same requests; the rules rest until `clear`. A text is the record's JSON."""
        self._ask("replay_faults", record=checks.record_of(record))

    def assert_replayed(self) -> None:
        """Raises: AssertionError if a request differs from the record, or has not come."""
        checks.check_replayed(*cast("tuple[str | None, list[FaultEvent]]", self._ask("replay_difference")))

    def _added(self, plain: dict[str, object]) -> Fault:
        sent, name = checks.checked(plain)
        return Fault(self._ask, cast("int", self._ask("add_fault", plain=sent)), name)
