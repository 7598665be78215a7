from __future__ import annotations

import json

import pytest

from odradek.broker.faults.rules.rule_texts import ACTIONS, TEXT_MAX, RuleError, rule_of, rule_to_plain
from odradek.broker.faults.rules.rules import MAX_AGE_MS, Delay, Error, Level, Match, Rule
from odradek.broker.faults.rules.shorthands import SHORTHANDS, spelled_out
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.field import VersionRange
from odradek.protocol.errors import ErrorCode

VALUES: dict[str, object] = {
    "not_leader": "t",
    "error": "NOT_COORDINATOR",
    "delay": "500ms",
    "throttle": "2s",
    "slow_bytes": 100,
}


def test_a_rule_with_all_keys_is_read() -> None:
    rule = rule_of(
        {
            "action": "error",
            "name": "no leader",
            "code": "not_leader_or_follower",
            "at": "partition",
            "applied": True,
            "message": "moved",
            "api": ["Fetch", "list_offsets"],
            "version": "4-11",
            "topic": "t",
            "partition": 0,
            "client_id": "me",
            "principal": "User:alice",
            "connection": 2,
            "every": 3,
            "probability": 0.5,
            "seed": 7,
            "times": 4,
            "after": "1s",
            "until": "2m",
            "enabled": False,
        }
    )
    assert rule == Rule(
        name="no leader",
        is_enabled=False,
        action=Error(code=ErrorCode.NOT_LEADER_OR_FOLLOWER, at=Level.PARTITION, applied=True, message="moved"),
        match=Match(
            apis=frozenset({ApiKey.FETCH, ApiKey.LIST_OFFSETS}),
            versions=VersionRange(4, 11),
            topic="t",
            partition=0,
            client_id="me",
            principal="User:alice",
            connection=2,
            every=3,
            probability=0.5,
            seed=7,
            times=4,
            after_ms=1_000,
            until_ms=120_000,
        ),
    )


@pytest.mark.parametrize("name", [*ACTIONS, *SHORTHANDS])
def test_what_is_written_is_read_as_the_same_rule(name: str) -> None:
    first = VALUES.get(name)
    plain: dict[str, object] = {"action": name}
    if name in SHORTHANDS and first is not None:
        plain = spelled_out(name, first)
    elif name in ACTIONS:
        plain |= {"error": {"code": 6}, "delay": {"ms": 1}, "throttle": {"ms": 1}, "slow_bytes": {}}.get(name, {})
        if name == "slow_bytes":
            plain["bytes_per_second"] = 10
    rule = rule_of(plain)
    written = json.loads(json.dumps(rule_to_plain(rule)))
    assert rule_of(written) == rule


def test_a_rule_may_begin_and_end_after_days() -> None:
    rule = rule_of({"action": "drop", "after": "7d", "until": MAX_AGE_MS})
    assert rule.match == Match(after_ms=7 * 86_400_000, until_ms=MAX_AGE_MS)
    assert rule_of(rule_to_plain(rule)) == rule


def test_a_shorthand_takes_further_keys_and_its_own_give_way() -> None:
    rule = rule_of({"action": "not_leader", "topic": "t", "times": 2, "api": "Produce"})
    assert rule.match == Match(apis=frozenset({ApiKey.PRODUCE}), topic="t", times=2)
    assert rule.action == Error(code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert rule.name == "not_leader"


@pytest.mark.parametrize(
    ("plain", "key"),
    [
        ({}, "action"),
        ({"action": ["error"]}, "action"),
        ({"action": "explode"}, "action"),
        ({"action": "error"}, "code"),
        ({"action": "error", "code": "NO_SUCH"}, "code"),
        ({"action": "error", "code": True}, "code"),
        ({"action": "error", "code": 6, "at": "nowhere"}, "at"),
        ({"action": "error", "code": 0}, "code"),
        ({"action": "delay"}, "ms"),
        ({"action": "delay", "ms": "soon"}, "ms"),
        ({"action": "delay", "ms": -1}, "ms"),
        ({"action": "delay", "ms": "2d"}, "ms"),
        ({"action": "delay", "ms": 1, "bytes": 3}, "bytes"),
        ({"action": "drop", "api": "Teleport"}, "api"),
        ({"action": "drop", "api": []}, "api"),
        ({"action": "drop", "versions": "4-2"}, "versions"),
        ({"action": "drop", "versions": "x"}, "versions"),
        ({"action": "drop", "partition": 0}, "partition"),
        ({"action": "drop", "topic": 5}, "topic"),
        ({"action": "drop", "topic": "t" * (TEXT_MAX + 1)}, "topic"),
        ({"action": "error", "code": 6, "message": "\u00e9" * (TEXT_MAX // 2 + 1)}, "message"),
        ({"action": "error", "code": 6, "message": "\ud800"}, "message"),
        ({"action": "drop", "connection": 0}, "connection"),
        ({"action": "drop", "nth": 0}, "nth"),
        ({"action": "drop", "nth": 1, "every": 2}, "nth"),
        ({"action": "drop", "times": 2**40}, "times"),
        ({"action": "drop", "probability": 1.5}, "probability"),
        ({"action": "drop", "probability": float("nan")}, "probability"),
        ({"action": "drop", "after": "2s", "until": "1s"}, "until"),
        ({"action": "drop", "after": MAX_AGE_MS + 1}, "after"),
        ({"action": "drop", "until": "366d"}, "until"),
        ({"action": "drop", "applied": "yes"}, "applied"),
        ({"action": "slow_bytes", "bytes_per_second": 0}, "bytes_per_second"),
        ({"action": "corrupt_crc", "api": "Produce"}, "api"),
        ({"action": "stale_metadata", "api": "Fetch"}, "api"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused_and_its_key_named(plain: dict[str, object], key: str) -> None:
    with pytest.raises(RuleError) as refused:
        rule_of(plain)
    assert refused.value.key == key
    assert len(str(refused.value)) < 2_000


def test_a_rule_of_a_plain_delay() -> None:
    assert rule_of({"action": "delay", "ms": "500ms"}).action == Delay(ms=500)


def test_the_longest_text() -> None:
    rule = rule_of({"action": "error", "code": 6, "message": "m" * TEXT_MAX, "topic": "t" * TEXT_MAX})
    assert rule.match.topic == "t" * TEXT_MAX
