"""What the facades of faults have in common: the texts of failed assertions, and rules from arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.faults.record import FaultRecord
from odradek.broker.faults.rules.rule_texts import action_name, rule_of, rule_to_plain
from odradek.broker.faults.rules.shorthands import SHORTHANDS, spelled_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.broker.faults.faults import RuleStatus
    from odradek.broker.faults.record import FaultEvent

WAIT_S: Final = 10.0
"""How long `wait_called` waits by default."""

MAX_SHOWN: Final = 5
"""Requests that the text of an error names."""


def shorthand(name: str, first: object, keys: Mapping[str, object]) -> dict[str, object]:
    """The keys of a rule. Raises: AttributeError for an unknown name."""
    known_shorthand(name)
    return spelled_out(name, first, keys)


def known_shorthand(name: str) -> None:
    """Raises: AttributeError."""
    if name not in SHORTHANDS:
        raise AttributeError(f"{name!r} is no fault; there are {', '.join(SHORTHANDS)}, and add()")


def checked(plain: Mapping[str, object]) -> tuple[dict[str, object], str]:
    """A rule as it is sent to the broker, and its name in messages. Raises: RuleError."""
    rule = rule_of(plain)
    return rule_to_plain(rule), rule.name or action_name(rule.action)


def record_of(record: FaultRecord | str) -> FaultRecord:
    """Raises: RuleError if a text is no record."""
    return FaultRecord.of_json(record) if isinstance(record, str) else record


def check_called(name: str, status: RuleStatus, times: int | None) -> None:
    """Raises: AssertionError if the fault has changed no request, or not as many as `times`."""
    if times is None and not status.fired:
        raise AssertionError(f"The fault {name} changed no request{_met(status)}")
    if times is not None and status.fired != times:
        raise AssertionError(f"The fault {name} changed {_requests(status.fired)}, not {times}{_met(status)}")


def check_waited(name: str, status: RuleStatus, times: int, timeout_s: float) -> None:
    """Raises: AssertionError if the fault has not yet changed as many requests."""
    if status.fired < times:
        changed = _requests(status.fired)
        raise AssertionError(f"The fault {name} changed {changed} in {timeout_s} s, not {times}{_met(status)}")


def check_not_called(name: str, calls: Sequence[FaultEvent]) -> None:
    """Raises: AssertionError if the fault has changed a request."""
    if calls:
        shown = ", ".join(_shown(each) for each in calls[:MAX_SHOWN])
        raise AssertionError(f"The fault {name} changed {_requests(len(calls))}: {shown}")


def check_replayed(difference: str | None, unplayed: Sequence[FaultEvent]) -> None:
    """Raises: AssertionError."""
    if difference is not None:
        raise AssertionError(difference)
    if unplayed:
        count = _requests(len(unplayed))
        raise AssertionError(f"{count} of the record have not come; the first is {_shown(unplayed[0])}")


def _shown(event: FaultEvent) -> str:
    return f"{event.api} {event.call} of {event.client_id!r}"


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _met(status: RuleStatus) -> str:
    return f"; {_requests(status.met)} fulfilled its other conditions" if status.met != status.fired else ""
