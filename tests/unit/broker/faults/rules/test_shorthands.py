from __future__ import annotations

import pytest

from odradek.broker.faults.rules.rule_texts import rule_of
from odradek.broker.faults.rules.rules import Error
from odradek.broker.faults.rules.shorthands import SHORTHANDS, spelled_out
from odradek.protocol.errors import ErrorCode


def test_a_positional_argument_is_the_key_that_people_mean() -> None:
    assert rule_of(spelled_out("not_leader", "t")).match.topic == "t"
    assert spelled_out("delay", "500ms", {"api": "Fetch"}) == {
        "action": "delay",
        "ms": "500ms",
        "api": "Fetch",
        "name": "delay",
    }
    assert rule_of(spelled_out("error", 6)).action == Error(code=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_name_of_ones_own_stays() -> None:
    assert spelled_out("drop", keys={"name": "mine"})["name"] == "mine"


def test_an_unknown_name() -> None:
    with pytest.raises(KeyError):
        spelled_out("explode")


@pytest.mark.parametrize("name", SHORTHANDS)
def test_every_shorthand_is_a_rule(name: str) -> None:
    needed = {"error": "NOT_COORDINATOR", "delay": 1, "throttle": 1, "slow_bytes": 1}
    assert rule_of(spelled_out(name, needed.get(name))).name == name
