from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import pytest

from odradek.controller.admin.policies import (
    SLOW_POLICY_MS,
    AlterConfigMetadata,
    ConfigResource,
    CreateTopicMetadata,
    Policies,
    PolicyViolation,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.config.config_def import ConfigError
from odradek.timer.clock import ManualClock

TOPIC = CreateTopicMetadata("t", 1, 1, None, {"retention.ms": "a secret"})
CHANGE = AlterConfigMetadata(ConfigResource("TOPIC", "t"), {"retention.ms": "a secret"})


class Policy:
    """A policy of topics or configs that does what it is made with."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def configure(self, configs: Mapping[str, str], /) -> None: ...

    def validate(self, metadata: object, /) -> None:
        self.act()

    def close(self) -> None:
        self.act()


def raising(error: BaseException) -> Policy:
    def act() -> None:
        raise error

    return Policy(act)


def refusals(policy: Policy) -> list[KafkaError]:
    policies = Policies(ManualClock(), policy, policy)
    with pytest.raises(KafkaError) as of_topic:
        policies.validate_create_topic(TOPIC)
    with pytest.raises(KafkaError) as of_change:
        policies.validate_alter_config(CHANGE)
    return [of_topic.value, of_change.value]


def test_a_violation_is_answered_with_its_message() -> None:
    for refusal in refusals(raising(PolicyViolation("too short"))):
        assert (refusal.code, refusal.specific_message) == (ErrorCode.POLICY_VIOLATION, "too short")


@pytest.mark.parametrize(
    ("error", "of_topic", "of_change"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "no"), ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
        (ConfigError("no"), ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG),
        (ValueError("no"), ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_CONFIG),
        (KeyError("no"), ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_other_exceptions_are_answered_as_by_apache_kafka(
    error: Exception, of_topic: ErrorCode, of_change: ErrorCode
) -> None:
    topic, change = refusals(raising(error))
    assert (topic.code, change.code) == (of_topic, of_change)
    assert topic.specific_message == (None if of_topic is ErrorCode.UNKNOWN_SERVER_ERROR else "no")
    if isinstance(error, ConfigError | ValueError):
        assert change.message == "Invalid config value for resource ConfigResource(type=TOPIC, name='t'): no"


def test_a_bug_is_logged_without_the_configs(caplog: pytest.LogCaptureFixture) -> None:
    refusals(raising(KeyError("bug")))
    assert "Policy.validate failed for t" in caplog.text
    assert "KeyError: 'bug'" in caplog.text
    assert "a secret" not in caplog.text


def test_an_exception_that_ends_the_process_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        Policies(ManualClock(), raising(KeyboardInterrupt())).validate_create_topic(TOPIC)


@pytest.mark.parametrize(("took_ms", "is_logged"), [(SLOW_POLICY_MS, False), (SLOW_POLICY_MS + 1, True)])
def test_a_policy_that_holds_the_loop_up_is_logged(
    took_ms: int, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    with caplog.at_level(logging.WARNING):
        Policies(clock, Policy(lambda: clock.advance(took_ms))).validate_create_topic(TOPIC)
    assert (f"Policy.validate took {took_ms} ms" in caplog.text) is is_logged


def test_both_are_closed_whatever_the_first_does(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[bool] = []
    Policies(ManualClock(), raising(OSError("bug")), Policy(lambda: closed.append(True))).close()
    assert closed == [True]
    assert "Cannot close the policy Policy" in caplog.text


def test_without_policies_everything_is_allowed() -> None:
    policies = Policies(ManualClock())
    policies.validate_create_topic(TOPIC)
    policies.validate_alter_config(CHANGE)
    policies.close()
