from __future__ import annotations

import pytest

from odradek.broker.faults.rules.rule_texts import RuleError
from odradek.testing import Broker
from odradek.testing.node.questions import scenario_questions
from odradek.testing.node.questions.questions import QUESTIONS


def test_rules_are_put_in_force_together_or_not_at_all() -> None:
    assert QUESTIONS["add_faults"] is scenario_questions.add_faults
    with Broker() as broker:
        numbers = broker.ask("add_faults", rules=[{"action": "drop", "client_id": "a"}] * 2)
        assert numbers == [1, 2]
        with pytest.raises(RuleError):
            broker.ask("add_faults", rules=[{"action": "drop"}, {"action": "explode"}])
        assert [rule.id for rule in broker.faults.rules()] == [1, 2]
        broker.ask("remove_faults", numbers=numbers)
        assert broker.faults.rules() == []


def test_the_disk_is_set_and_a_reset_makes_it_as_new() -> None:
    with Broker() as broker:
        broker.ask("set_disk", is_full=True, sync_ms=3)
        assert broker.ask("disk_state") == (True, 3)
        broker.reset()
        assert broker.ask("disk_state") == (False, 0)
