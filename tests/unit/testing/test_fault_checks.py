from __future__ import annotations

import pytest

from odradek.broker.faults.faults import RuleStatus
from odradek.broker.faults.record import FaultEvent, FaultRecord
from odradek.broker.faults.rules.rule_texts import RuleError
from odradek.testing import fault_checks as checks

EVENT = FaultEvent(
    number=1,
    rule="drop",
    client_id="me",
    api="Fetch",
    version=4,
    call=3,
    topics=(),
    connection=1,
    correlation_id=1,
    fault={"action": "drop"},
)


def status(fired: int, met: int = 0) -> RuleStatus:
    return RuleStatus(id=1, rule={}, met=met or fired, fired=fired)


def test_counts_of_calls() -> None:
    checks.check_called("drop", status(1), None)
    checks.check_called("drop", status(2), 2)
    checks.check_called("drop", status(0), 0)
    checks.check_waited("drop", status(2), 1, 10)
    checks.check_not_called("drop", [])
    with pytest.raises(AssertionError, match=r"^The fault drop changed no request$"):
        checks.check_called("drop", status(0), None)
    with pytest.raises(AssertionError, match=r"changed 3 requests, not 2$"):
        checks.check_called("drop", status(3), 2)
    with pytest.raises(AssertionError, match=r"changed 1 request in 10 s, not 2; 4 requests fulfilled its other cond"):
        checks.check_waited("drop", status(1, 4), 2, 10)
    with pytest.raises(AssertionError, match=r"changed 7 requests: (Fetch 3 of 'me'(, )?){5}$"):
        checks.check_not_called("drop", [EVENT] * 7)


def test_replays() -> None:
    checks.check_replayed(None, [])
    with pytest.raises(AssertionError, match="differs"):
        checks.check_replayed("it differs", [EVENT])
    with pytest.raises(AssertionError, match="2 requests of the record have not come; the first is Fetch 3 of 'me'"):
        checks.check_replayed(None, [EVENT, EVENT])


def test_what_is_sent_to_the_broker() -> None:
    assert checks.checked({"action": "drop"}) == ({"action": "drop", "name": "drop"}, "drop")
    assert checks.shorthand("not_leader", "t", {"times": 2})["topic"] == "t"
    with pytest.raises(AttributeError, match="'no_leader' is no fault; there are not_leader"):
        checks.shorthand("no_leader", None, {})
    with pytest.raises(RuleError):
        checks.checked({"action": "error"})
    record = FaultRecord(events=(EVENT,))
    assert checks.record_of(record) is record
    assert checks.record_of(record.to_json()) == record
