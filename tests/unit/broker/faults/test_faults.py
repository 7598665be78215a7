from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from odradek.broker.faults import faults as module
from odradek.broker.faults.rules.rule_texts import RuleError, rule_of
from tests.support.async_test import async_test
from tests.support.in_process.connections.faulty_dispatching import Faulty


@pytest.fixture
def broker() -> Iterator[Faulty]:
    served = Faulty()
    yield served
    served.close()


DROP = {"action": "black_hole", "client_id": "nobody"}


def test_rules_are_listed_with_what_they_did_and_removed(broker: Faulty) -> None:
    first = broker.faults.add({"action": "error", "code": 25, "api": "Heartbeat", "every": 2})
    second = broker.faults.add(rule_of(DROP))
    broker.ask(1)
    broker.ask(2)
    assert [(rule.id, rule.met, rule.fired) for rule in broker.faults.rules()] == [(first, 2, 1), (second, 0, 0)]
    assert [event.correlation_id for event in broker.faults.events(first)] == [2]
    assert broker.faults.remove(first)
    assert not broker.faults.remove(first)
    assert broker.faults.status(first).fired == 1
    assert [rule.id for rule in broker.faults.rules()] == [second]
    with pytest.raises(RuleError, match="there is no rule 99"):
        broker.faults.status(99)


def test_there_is_a_limit_of_rules(broker: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RULES", 2)
    numbers = [broker.faults.add(DROP) for _ in range(2)]
    with pytest.raises(RuleError, match="there may be 2 rules"):
        broker.faults.add(DROP)
    for number in numbers:
        broker.faults.remove(number)
    for _ in range(3):
        broker.faults.remove(broker.faults.add(DROP))
    with pytest.raises(RuleError):
        broker.faults.status(numbers[0])  # removed rules are forgotten, the oldest first


def test_a_rule_rests_while_it_is_disabled(broker: Faulty) -> None:
    number = broker.faults.add({"action": "error", "code": 25})
    broker.faults.enable(number, enabled=False)
    broker.ask()
    assert broker.faults.status(number).fired == 0
    broker.faults.enable(number, enabled=True)
    broker.ask()
    assert broker.faults.status(number).fired == 1


def test_clear_forgets_everything(broker: Faulty) -> None:
    number = broker.faults.add({"action": "error", "code": 25})
    broker.ask()
    broker.faults.clear()
    assert broker.faults.rules() == []
    assert broker.faults.record().events == ()
    assert broker.dispatcher._interceptor is None
    with pytest.raises(RuleError):
        broker.faults.events(number)


def test_requests_count_from_the_first_rule_on_until_clear(broker: Faulty) -> None:
    broker.ask()
    broker.faults.remove(broker.faults.add(DROP))
    broker.ask()
    broker.ask()
    broker.faults.add({"action": "error", "code": 25})
    broker.ask()
    assert [event.call for event in broker.faults.record().events] == [3]
    broker.faults.clear()
    broker.ask()
    broker.faults.add({"action": "error", "code": 25})
    broker.ask()
    assert [event.call for event in broker.faults.record().events] == [1]


def test_clear_removes_all_rules_at_once(broker: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, 10,000 rules would take seconds: each change looks at all that are left."""
    broker.faults.add_all([DROP] * 20)
    left: list[int] = []
    monkeypatch.setattr(broker.faults._interceptor, "set_rules", lambda rules: left.append(len(rules)))
    broker.faults.clear()
    assert left == [0]


@async_test
async def test_waiting_ends_when_the_rule_has_fired_so_often() -> None:
    broker = Faulty()
    try:
        number = broker.faults.add({"action": "error", "code": 25})
        waiting = asyncio.ensure_future(broker.faults.wait_fired(number, 2))
        given_up = asyncio.ensure_future(broker.faults.wait_fired(number, 5))
        await asyncio.sleep(0)
        given_up.cancel()
        broker.ask()
        await asyncio.sleep(0)
        assert not waiting.done()
        broker.ask()
        await waiting
        await broker.faults.wait_fired(number, 1)
    finally:
        broker.close()


def test_a_replay_goes_by_client_api_and_number_and_reports_what_did_not_come(broker: Faulty) -> None:
    broker.faults.add({"action": "error", "code": 25, "nth": 2})
    broker.ask()
    broker.ask()
    record = broker.faults.record()
    broker.faults.clear()
    broker.faults.replay(record)
    assert [event.call for event in broker.faults.unplayed] == [2]
    broker.ask()
    broker.ask()
    assert broker.faults.unplayed == []
    assert broker.faults.difference is None
    assert broker.faults.record().sequence() == record.sequence()
